"""The responses of a bookie to a group of single reads. Event loop."""

from collections.abc import Mapping
from typing import NamedTuple

from bookie._fast.client.read_run import ReadRun
from bookie.errors import BookKeeperError, NoSuchEntry

__all__ = ["ReadAnswers"]


class ReadAnswers(NamedTuple):
    """The responses: entries in `run`, errors of single entries in `errors`, and in `lost` why others have no
    response.
    """

    run: ReadRun
    errors: Mapping[int, BookKeeperError]
    lost: BookKeeperError | None = None

    def stored(self, entry: int) -> bytes:
        """Return the entry as the bookie stores it, or raise its error."""
        error = self.errors.get(entry)
        if error is not None:
            raise error
        stored = self.run.stored(entry)
        if stored is None:
            raise self.lost or NoSuchEntry(f"ledger {self.run.ledger}, entry {entry}: it was not requested")
        return stored
