"""What a bookie answered to single reads that were asked together. Values only; event loop."""

from collections.abc import Mapping
from typing import NamedTuple

from bookie._fast.client.read_run import ReadRun
from bookie.errors import BookKeeperError, NoSuchEntry

__all__ = ["ReadAnswers"]


class ReadAnswers(NamedTuple):
    """`errors`: of the entries whose answer was one. `lost`: why others have no answer."""

    run: ReadRun
    errors: Mapping[int, BookKeeperError]
    lost: BookKeeperError | None = None

    def stored(self, entry: int) -> bytes:
        """The entry as the bookie stores it, or its error."""
        error = self.errors.get(entry)
        if error is not None:
            raise error
        stored = self.run.stored(entry)
        if stored is None:
            raise self.lost or NoSuchEntry(f"ledger {self.run.ledger}, entry {entry}: it was not asked for")
        return stored
