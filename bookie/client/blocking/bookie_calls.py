"""Requests to single bookies, for threads; the counterpart of `bookie.client.bookies.BookieClient`. Any thread."""

from concurrent.futures import Future

from bookie.client.bookies import BookieClient
from bookie.client.entries.batch import StoredBatch
from bookie.client.event_loop.thread import LoopThread

__all__ = ["BookieCalls"]


class BookieCalls:
    """Requests to single bookies, below all ledgers. Get it from `BookKeeper.bookie_client`."""

    def __init__(self, thread: LoopThread, client: BookieClient) -> None:
        self._thread = thread
        self._client = client

    def batch_read_entries(  # noqa: PLR0913 - those of the request, and the time limit
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
        timeout: float | None = None,
    ) -> StoredBatch:
        """Read consecutive entries of a ledger as one bookie stores them. Their digests are not verified.

        Args:
            bookie: The id of the bookie.
            ledger_id: The id of the ledger.
            start_entry_id: The id of the first entry.
            max_count: The highest number of entries; 0 means no limit.
            max_size: The highest size of the response in bytes, at most a frame; 0 returns one entry.
            flags: Bits of `Flags`: FENCE also fences the ledger, HIGH_PRIORITY asks for preferred treatment.
            master_key: The ledger's master key, which is needed for FENCE.
            allow_fast_fail: Raise TooManyRequests, instead of waiting, if too much output is queued for the bookie.
            timeout: Seconds to wait at most; None means `callTimeoutSec`.

        Returns:
            One entry or more; call `StoredBatch.verify` on it.

        Raises:
            IncorrectParameter: The start, the count or the size is negative.
            IllegalOperation: The bookie does not support batch reads.
            NoSuchLedger: The bookie has no data of this ledger.
            NoSuchEntry: The bookie does not hold the first entry.
            BookKeeperError: Any other error of the connection or of the bookie, such as BookieUnavailable,
                RequestTimeout or ReadError.
        """
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
            ),
            timeout,
        )

    def batch_read_entries_async(
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
    ) -> Future[StoredBatch]:
        """Start a `batch_read_entries`, without waiting. `add_done_callback` of the future takes a callback.

        Args:
            bookie: See `batch_read_entries`, as for all further arguments.
            ledger_id: See `batch_read_entries`.
            start_entry_id: See `batch_read_entries`.
            max_count: See `batch_read_entries`.
            max_size: See `batch_read_entries`.
            flags: See `batch_read_entries`.
            master_key: See `batch_read_entries`.
            allow_fast_fail: See `batch_read_entries`.

        Returns:
            A future of the entries, or of an error of `batch_read_entries`. Its callbacks run on the client's thread,
            where calls that wait are refused.

        Raises:
            ClientClosed: The client is closed.
        """
        return self._thread.submit(
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
