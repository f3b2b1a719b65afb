"""The path of a ledger's node below the root of a ZooKeeper cluster, by layout. Pure functions; any thread.

A tree divides the zero-padded decimal id into one node name per level, the last one after an `L`:

    short  10 digits   /12/3456/L7890
    long   19 digits   /000/0000/0012/3456/L7890
    flat   10 digits   /L1234567890

The hierarchical layout is a hybrid: ids below 2147483647 have short paths, all others long ones.
"""

import re
from dataclasses import dataclass

from bookie.errors import LedgerIdOverflow
from bookie.metadata.records.ledger_metadata import LEDGER_IDS_END
from bookie.metadata.zookeeper.layout import Layout

SHORT_IDS_END = 2147483647


@dataclass(frozen=True, slots=True)
class LedgerTree:
    """A way to divide ids into levels."""

    widths: tuple[int, ...]

    def path(self, ledger_id: int) -> str:
        digits = f"{ledger_id:0{sum(self.widths)}d}"
        names = []
        for width in self.widths[:-1]:
            names.append(digits[:width])
            digits = digits[width:]
        return "/" + "/".join([*names, f"L{digits}"])

    def level(self, depth: int) -> re.Pattern[str]:
        """Return the pattern of node names at `depth`; group 1 has the digits."""
        width = self.widths[depth]
        if depth < len(self.widths) - 1:
            return re.compile(rf"([0-9]{{{width}}})\Z")
        return re.compile(rf"L([0-9]{{{width}}}{'[0-9]*' if depth == 0 else ''})\Z")


SHORT = LedgerTree((2, 4, 4))
LONG = LedgerTree((3, 4, 4, 4, 4))
FLAT = LedgerTree((10,))

TREES = {
    "hierarchical": (SHORT, LONG),
    "longhierarchical": (LONG,),
    "legacyhierarchical": (SHORT,),
    "flat": (FLAT,),
}


def trees(layout: Layout) -> tuple[LedgerTree, ...]:
    """Return the trees of a layout. One after the other they hold the ledgers in ascending order of id."""
    return TREES[layout.kind]


def ledger_path(layout: Layout, ledger_id: int) -> str:
    """Return the path of a ledger's node below the root. Raises LedgerIdOverflow if the layout cannot hold the id."""
    if not 0 <= ledger_id < LEDGER_IDS_END:
        raise LedgerIdOverflow(f"ledger id {ledger_id} is not in [0, {LEDGER_IDS_END - 1}]")
    if layout.kind == "legacyhierarchical" and ledger_id >= SHORT_IDS_END:
        raise LedgerIdOverflow(
            f"ledger id {ledger_id} is too large for layout {layout.kind}: it must be below {SHORT_IDS_END}"
        )
    choices = trees(layout)
    return choices[0 if ledger_id < SHORT_IDS_END else -1].path(ledger_id)
