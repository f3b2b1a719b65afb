"""The shapes that `perf.scale` measures, and the kinds of threads."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

__all__ = ["kind_of", "KINDS", "OF_LATENCY", "ON_OWN_DISKS", "Shape", "SHAPES"]

Work = Literal["adds", "batches"]
KINDS = ("io", "journal", "flush", "read", "other")
"""I/O loops; journal threads with those that prepare files; flush thread and flushers; read pool; all others."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A bookie: on one CPU or two, with so many I/O loops, journals and ledger directories."""

    work: Work
    cpus: int
    loops: int
    journals: int
    directories: int

    def row(self) -> dict[str, Any]:
        """Return it as columns of a result."""
        return asdict(self)


def kind_of(thread: str) -> str:
    """Return the kind of a thread by its name."""
    kind = thread.partition("-")[0]
    return kind if kind in KINDS else "other"


SHAPES = (
    Shape("adds", 1, 1, 1, 1),
    Shape("adds", 2, 1, 1, 1),
    Shape("adds", 2, 2, 1, 1),
    Shape("adds", 2, 4, 1, 1),
    Shape("adds", 2, 2, 2, 1),
    Shape("adds", 2, 2, 4, 1),
    Shape("adds", 2, 2, 1, 2),
    Shape("adds", 2, 2, 1, 4),
    Shape("adds", 2, 2, 4, 4),
    Shape("batches", 1, 1, 1, 1),
    Shape("batches", 2, 1, 1, 1),
    Shape("batches", 2, 2, 1, 1),
    Shape("batches", 2, 4, 1, 1),
)

ON_OWN_DISKS = tuple(
    Shape("adds", 2, 2, journals, directories)
    for journals, directories in ((1, 1), (2, 2), (4, 4), (1, 4), (2, 4), (4, 1), (4, 2))
)
"""What is measured where each journal and each ledger directory has a disk of its own, which is what is waited for."""
OF_LATENCY = tuple(shape for shape in ON_OWN_DISKS if shape.journals == shape.directories)
"""What is measured on such disks that have a latency but no limit of their rate."""
