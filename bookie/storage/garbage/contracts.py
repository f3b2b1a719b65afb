"""What garbage collection needs from the metadata store and from each ledger directory; the server supplies both.

The thread `garbage` makes all calls of the metadata store. Those of a directory come from one thread at a time, except
where they say otherwise.
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
    """What the metadata store says about one ledger, from the point of view of this bookie."""

    ABSENT = "no such ledger"
    OURS = "this bookie is in one of its ensembles"
    ELSEWHERE = "it is closed, and this bookie is in none of its ensembles"
    UNSETTLED = "it is not closed, and this bookie is in none of its ensembles yet"


class Metadata(Protocol):
    """The metadata store. If a call raises anything, nothing was learnt, and nothing may be deleted."""

    def instance_id(self) -> str | None:
        """Return the instance id of the cluster in the store; None for clusters older than instance ids."""
        ...

    def seen(self) -> object:
        """Return the session with the store, and all that identifies the cluster in it, for comparisons. Raises
        whatever the store raises, also if the session ends meanwhile.
        """
        ...

    def ranges(self) -> Iterator[Sequence[int]]:
        """Yield all ledger ids in ascending order, in pieces."""
        ...

    def standing(self, ledger: int) -> Standing:
        """Read the metadata of one ledger. Return ABSENT only if the store said so."""
        ...

    def replication_lock(self, ledger: int) -> AbstractContextManager[bool]:
        """Keep others from copying the ledger to this bookie. The context is False if that may already happen."""
        ...


class Outcome(Enum):
    """The outcome of unlinking or compacting one log."""

    DONE = "done"
    GONE = "nothing to do any more"
    KEPT = "kept, because something is wrong with it"
    STOPPED = "stopped before its end"
    NO_SPACE = "no space"


@dataclass(frozen=True, slots=True)
class Work:
    """The result for one log. `why` gives the reason and the remedy for a log that was kept."""

    outcome: Outcome
    freed_bytes: int = 0
    why: str = ""


class Ledgers(Protocol):
    """The ledgers of one ledger directory."""

    def ledger_ids(self) -> Ids:
        """Return the ids of all ledgers that are known here, in ascending order."""
        ...

    def delete_ledgers(self, ledgers: Ids) -> None:
        """Delete ledgers from index, caches and ledger table. Some may be unknown by now."""
        ...

    def drop_fences(self, kept_ms: int) -> int:
        """Forget the fences of ledgers that were deleted at least `kept_ms` ago, and return how many. Only time in
        which a bookie ran on this directory counts, by its monotonic clock.
        """
        ...


class Directory(Ledgers, Protocol):
    """One ledger directory: its contents, and operations on its logs. OSError means that a file cannot be read."""

    @property
    def path(self) -> str: ...

    def log_use(self) -> LogUse:
        """Return every log that was closed before the call, with its live bytes."""
        ...

    def unlink_log(self, log_id: int) -> Work:
        """Remove a log without live entries, unless it holds entries that the index should have."""
        ...

    def compact(self, log_id: int) -> Work:
        """Move the live entries out of a log and remove it. Observes the rate limit, and ends early after `stop`."""
        ...

    def progress(self) -> tuple[int, int, int]:
        """Return (log id, bytes read, total bytes) of the log being compacted; id -1 between logs. Any thread."""
        ...

    def stop(self) -> None:
        """Stop the work on a log where it stands, and begin no more. Any thread."""
        ...
