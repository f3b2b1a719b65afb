from os import PathLike

import numpy as np
from numpy.typing import NDArray

from bookie._fast.index.view import Index
from bookie._fast.store.storage import DirectoryStore, StorageEngine

class DirectoryIndexRepair:
    """Repairs the index of one ledger directory; `index` is its directory, `new` the one for a new index."""

    def __init__(
        self,
        stores: StorageEngine,
        handle: DirectoryStore,
        index: str | PathLike[str],
        new: str | PathLike[str],
        map_bytes: int,
    ) -> None: ...
    def wait(self, timeout_s: float) -> bool:
        """Wait until damage is noted, `stop` is called or the time is over; return whether damage is pending."""
    def stop(self) -> None:
        """End this and every later wait. Any thread."""
    def note(self) -> None:
        """Note damage, which asks for a repair."""
    def salvage(self) -> tuple[int, int, int, int]:
        """Replace the index by a new one with the readable part; return (runs, lost values, ledgers, ledgers in
        doubt).

        Flushes wait meanwhile. `new` is an empty directory. OSError: ENOSPC, EIO; then the old index is still in use.
        """
    def doubts(self) -> list[tuple[int, bool]]:
        """Return (ledger, whether the doubt is lasting) for each ledger in doubt, ascending."""
    def is_open(self, log_id: int) -> bool:
        """Return whether this entry log may still be written."""
    def committed(self, log_id: int) -> int | None:
        """Return up to where the index has pointed into an open log of compaction; None for any other log."""
    def stats(self) -> dict[str, int]:
        """Return how often damage was met, and how many ledgers are in doubt."""
    def take_damage(self) -> tuple[int, int] | None:
        """Return (number of damages since the last call, ledger of the first or -1), or None if there were none."""
    def points_into(self, log_id: int, offset: int) -> bool:
        """Return whether the index has a record in this log that ends after this offset."""
    def take_found(self, found: Index, ids: NDArray[np.int64], lasting: NDArray[np.uint8]) -> None:
        """Put runs of `found` where nothing is stored; then the ledgers are not in doubt any more, or for good if
        `lasting`.

        OSError: ENOSPC, EIO; ledgers before the failure are complete.
        """
