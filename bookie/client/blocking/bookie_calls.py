"""Requests to single bookies for threads: the twin of `bookie.client.bookies.BookieClient`. Any thread."""

from bookie.client.bookies import BookieClient
from bookie.client.entries.batch import StoredBatch
from bookie.client.event_loop.thread import LoopThread

__all__ = ["BookieCalls"]


class BookieCalls:
    """Made by `BookKeeper.bookie_client`."""

    def __init__(self, thread: LoopThread, client: BookieClient) -> None:
        self._thread = thread
        self._client = client

    def batch_read_entries(
        self,
        bookie: str,
        ledger_id: int,
        start_entry_id: int,
        max_count: int,
        max_size: int,
        flags: int = 0,
        master_key: bytes | None = None,
        *,
        allow_fast_fail: bool = False,
    ) -> StoredBatch:
        """Entries of a ledger as this bookie stores them, one at least. See `BookieClient.batch_read_entries`."""
        return self._thread.run(
            self._client.batch_read_entries(
                bookie,
                ledger_id,
                start_entry_id,
                max_count,
                max_size,
                flags,
                master_key,
                allow_fast_fail=allow_fast_fail,
            )
        )
