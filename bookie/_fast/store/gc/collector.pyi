from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from bookie._fast.entrylog.map import LogLedgers as LogLedgers
from bookie._fast.store.storage import DirectoryStore, StorageEngine

class ClosedLogs(NamedTuple):
    ids: NDArray[np.int64]  # ascending
    file_bytes: NDArray[np.int64]

class LiveBytes(NamedTuple):
    ids: NDArray[np.int64]  # ascending; logs that no run points into are not listed
    live: NDArray[np.int64]  # bytes of records that the index points at, length words included
    runs: int  # runs walked

class Collected(NamedTuple):
    # What became of a log:
    # "unlinked"    its survivors are synced and indexed elsewhere, the file is gone
    # "gone"        there was no such file
    # "open"        the log may still be written, or its commit is not done: nothing was touched
    # "live"        unlink_log only: the index points into it, nothing was touched
    # "orphans"     entries of ledgers that exist here are found nowhere in the index: kept; alarm, rebuild the index
    # "torn"        it ends inside a record, and the index points behind that: kept; alarm
    # "disagrees"   the index names another record than the one that lies there: kept; alarm, rebuild the index
    # "no space"    the target log or the index found no space: kept, what was indexed so far has moved
    # "quarantined" it holds older copies of entries of a ledger in quarantine: kept until that is lifted
    # "unreadable"  reading the file failed, or it is no entry log: kept; alarm
    # "stopped"     stop() was called: kept, what was indexed so far has moved
    outcome: str
    moved_records: int
    moved_bytes: int
    dropped_records: int
    dropped_bytes: int
    file_bytes: int  # freed when "unlinked"
    torn_at: int | None
    ledger: int | None  # of the record for which the log is kept
    entry: int | None
    offset: int | None  # where that record lies

class DirectoryCollector:
    """Garbage collection in one ledger directory: one thread, but set_rate, pause, resume, stop, progress any thread.

    OSError: the index cannot be read or written; a failed write or sync has set the fatal latch before.
    """

    directory: str
    def __new__(cls, stores: StorageEngine, handle: DirectoryStore) -> Self: ...
    # Every ledger of this directory, ascending. Taken before the metadata's listing.
    def ledger_ids(self) -> NDArray[np.int64]: ...
    # Logs that never change any more. Taken before live_bytes: only these may be judged by it.
    def closed_logs(self) -> ClosedLogs: ...
    # One walk over the index; exact for every log that was closed before it began.
    def live_bytes(self) -> LiveBytes: ...
    # OSError: the file cannot be read. ValueError: it is no entry log.
    def log_ledgers(self, log_id: int) -> LogLedgers: ...
    # Whether the index points at a record of this log that ends behind `offset`.
    def points_into(self, log_id: int, offset: int = 0) -> bool: ...
    # After a checkpoint that the caller asked for (LedgerStorage.checkpoint answered True), so that no replay brings
    # them back. Index first, then memory; how many were known. ENOSPC: those deleted so far stay deleted.
    def delete_ledgers(self, ids: NDArray[np.int64] | Sequence[int]) -> int: ...
    def drop_fences(self, kept_ms: int) -> int: ...
    # Remove a log that the index does not point into, once every entry in it was verified.
    def unlink_log(self, log_id: int) -> Collected: ...
    # Move what the index points at to the directory's compaction log, then remove the log.
    def compact(self, log_id: int) -> Collected: ...
    # Close the compaction log with its ledgers map; the next compaction starts another.
    def finish(self) -> None: ...
    # Bytes of source logs a second, 0: unlimited; works at once, also while a compaction runs.
    def set_rate(self, bytes_per_s: int) -> None: ...
    # A running compaction waits (its log stays open) until resume or stop.
    def pause(self) -> None: ...
    def resume(self) -> None: ...
    # For good: what runs ends with "stopped" within one batch, and so does every later call.
    def stop(self) -> None: ...
    # log_id (-1: none), log_bytes, log_done, moved_bytes, dropped_bytes, logs_unlinked, bytes_unlinked, paused, rate.
    def progress(self) -> dict[str, int]: ...
    # Before the DirectoryStore closes.
    def close(self) -> None: ...
