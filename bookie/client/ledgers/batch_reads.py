"""Batch reads of a ledger: many entries with one response of one bookie, or single reads where that is impossible.
Event loop.

Single reads are used when entries are striped (ensemble > write quorum), when batch reads are disabled, when no
bookie with the entries supports batch reads, or when those that do have no good answer. The result is the same.
"""

from bookie.client.arguments import IDS_END
from bookie.client.config import ClientConfig
from bookie.client.contracts import Bookies, Fallback
from bookie.client.entries.batch import StoredBatch
from bookie.client.entries.digest import Digest
from bookie.client.entries.verified import EntryBatch
from bookie.client.ledgers.replicas import Replicas
from bookie.client.ledgers.singles import SingleReads
from bookie.client.ledgers.view import LedgerView
from bookie.errors import BookKeeperError, ClientClosed, IllegalOperation

__all__ = ["BatchReads"]

COUNT_MAX = 2**31 - 1
"""The largest count that fits into the request."""


class BatchReads:
    """The batch reads of one ledger."""

    def __init__(
        self,
        view: LedgerView,
        digest: Digest,
        bookies: Bookies,
        replicas: Replicas,
        singles: SingleReads,
        config: ClientConfig,
    ) -> None:
        self._view = view
        self._digest = digest
        self._bookies = bookies
        self._replicas = replicas
        self._singles = singles
        self._bytes_max = config.frame_bytes_max
        metadata = view.metadata
        self._never: Fallback | None = None
        if not config.batch_read_enabled:
            self._never = Fallback.DISABLED
        elif metadata.ensemble_size != metadata.write_quorum:
            self._never = Fallback.STRIPED

    @property
    def enabled(self) -> bool:
        """Whether batch reads are tried at bookies that support them."""
        return self._never is None

    async def some(self, first: int, last: int | None, max_count: int, max_size: int) -> EntryBatch:
        """Read entries from `first` on, one or more.

        The batch ends at `last` (None: unknown), at the end of the segment, at `max_count` entries (0: no limit), or
        at `max_size` bytes of the response, which are at most a frame.
        """
        segment, segment_last = self._view.segment_at(first)
        ends = [end for end in (last, segment_last, IDS_END - 1) if end is not None]
        # Behind the end of a closed ledger, one entry is asked for, so that a bookie says that it does not exist.
        count = max(1, min(max_count or COUNT_MAX, COUNT_MAX, *(end - first + 1 for end in ends)))
        size = min(max_size, self._bytes_max) if max_size > 0 else self._bytes_max
        why = self._never
        if why is None and not any(map(self._bookies.batches, segment.bookies)):
            why = Fallback.UNSUPPORTED
        if why is None:
            refused: set[str] = set()
            try:
                return await self._batch(first, count, size, refused)
            except ClientClosed:
                raise
            except BookKeeperError:  # the entry may be on a bookie that does not support batch reads
                if not refused and all(map(self._bookies.batches, segment.bookies)):
                    raise
            why = Fallback.FAILED if any(map(self._bookies.batches, segment.bookies)) else Fallback.UNSUPPORTED
        self._bookies.fell_back(why)
        return await self._singles.some(first, first + count - 1, size)

    async def _batch(self, first: int, count: int, size: int, refused: set[str]) -> EntryBatch:
        """Ask the replicas, and put those that do not support batch reads into `refused`."""
        ledger = self._view.ledger

        async def ask(bookie: str) -> StoredBatch:
            try:
                return await self._bookies.batch_read(bookie, ledger, first, count, size)
            except IllegalOperation:
                refused.add(bookie)
                raise

        def judge(_: str, answer: StoredBatch) -> EntryBatch:
            batch = EntryBatch.verified(answer, self._digest, first + count - 1)
            self._view.saw_lac(batch.lac)
            return batch

        return await self._replicas.ask(
            first,
            ask,
            judge,
            among=self._bookies.batches,
        )
