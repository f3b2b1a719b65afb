"""What garbage collection needs of the metadata store, and of each ledger directory. The server hands both in.

All calls come from the one thread `garbage`, except those of `Directory` that say otherwise.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from bookie.storage.garbage.choice import LogUse
from bookie.storage.garbage.decision import Ids

__all__ = ["Directory", "Ledgers", "Metadata", "Outcome", "Standing", "Work"]


class Standing(Enum):
    """What the metadata store says of one ledger, as seen from this bookie."""

    ABSENT = "no such ledger"
    OURS = "this bookie is in one of its ensembles"
    ELSEWHERE = "it is closed, and this bookie is in none of its ensembles"
    UNSETTLED = "it is not closed, and this bookie is in none of its ensembles yet"


class Metadata(Protocol):
    """The metadata store. Whatever a call raises means that nothing was learnt, and nothing may be deleted."""

    def instance_id(self) -> str | None:
        """Of the cluster that the store holds now; None in clusters older than instance ids."""
        ...

    def ranges(self) -> Iterator[Sequence[int]]:
        """All ledger ids, ascending, in pieces."""
        ...

    def standing(self, ledger: int) -> Standing:
        """One read of one ledger. ABSENT only if the store said so."""
        ...

    def replication_lock(self, ledger: int) -> AbstractContextManager[bool]:
        """Keep others from copying the ledger to this bookie; False: somebody does so already, or may."""
        ...


class Outcome(Enum):
    """How the work on one log ended."""

    DONE = "done"
    GONE = "nothing to do any more"
    KEPT = "kept, for something is wrong with it"
    STOPPED = "stopped before its end"
    NO_SPACE = "no space"


@dataclass(frozen=True, slots=True)
class Work:
    """What became of one log; `why` in words with a remedy, for one that was kept."""

    outcome: Outcome
    freed_bytes: int = 0
    why: str = ""


class Ledgers(Protocol):
    """The ledgers of one ledger directory."""

    def ledger_ids(self) -> Ids:
        """Of every ledger that is known here, ascending."""
        ...

    def delete_ledgers(self, ledgers: Ids) -> None:
        """From index, caches and ledger table. They may be unknown by now."""
        ...

    def drop_fences(self, kept_ms: int) -> int:
        """Forget that ledgers were fenced that were deleted so long ago; how many. Only time counts in which a bookie
        ran on this directory, by its monotonic clock.
        """
        ...


class Directory(Ledgers, Protocol):
    """One ledger directory: what lies in it, and the work on its bytes. OSError: a file could not be read."""

    @property
    def path(self) -> str: ...

    def log_use(self) -> LogUse:
        """Every log that was closed before the call, and what is live in it."""
        ...

    def unlink_log(self, log_id: int) -> Work:
        """Remove a log in which nothing is live, unless it holds what the index should have."""
        ...

    def compact(self, log_id: int) -> Work:
        """Move what is live out of a log and remove it. Keeps to the rate; ends early when told to stop."""
        ...

    def progress(self) -> tuple[int, int, int]:
        """(log id, bytes read, bytes in all) of the log being compacted; the id is -1 between logs. Any thread."""
        ...

    def stop(self) -> None:
        """End the work on a log where it stands, and begin no more. Any thread."""
        ...
