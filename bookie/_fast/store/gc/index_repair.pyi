from os import PathLike

import numpy as np
from numpy.typing import NDArray

from bookie._fast.index.view import Index
from bookie._fast.store.storage import DirectoryStore, StorageEngine

class DirectoryIndexRepair:
    """Of one ledger directory. `index` is the directory of its index, `new` where another one is made."""

    def __init__(
        self,
        stores: StorageEngine,
        handle: DirectoryStore,
        index: str | PathLike[str],
        new: str | PathLike[str],
        map_bytes: int,
    ) -> None: ...
    def wait(self, timeout_s: float) -> bool:
        """Until damage is noted, or `stop`; whether it is."""
    def stop(self) -> None:
        """End every wait, this one and later ones. Any thread; idempotent."""
    def note(self) -> None:
        """Ask for a repair."""
    def salvage(self) -> tuple[int, int, int, int]:
        """Swap in a new index with what can be read: (runs, values that were lost, ledgers, ledgers in doubt).

        Flushes wait meanwhile. `new` is an empty directory. OSError: ENOSPC, EIO; the old index is then in its place.
        """
    def doubts(self) -> list[tuple[int, bool]]:
        """(ledger, whether for good) of each one in doubt, ascending."""
    def is_open(self, log_id: int) -> bool:
        """Whether somebody writes to this entry log."""
    def stats(self) -> dict[str, int]:
        """How often damage was met, and how many ledgers are in doubt."""
    def take_damage(self) -> tuple[int, int] | None:
        """How often damage was met since the last call, and a ledger that it was met for (-1: none); None: never."""
    def points_into(self, log_id: int, offset: int) -> bool:
        """Whether the index knows of a record in this log from this offset on."""
    def take_found(self, found: Index, ids: NDArray[np.int64], lasting: NDArray[np.uint8]) -> None:
        """Put runs of `found` where nothing is stored; then the ledgers are in doubt no longer, or for good.

        OSError: ENOSPC, EIO; those before it are through.
        """
