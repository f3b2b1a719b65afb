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
    runs: int  # number of runs walked

class Collected(NamedTuple):
    # The outcome for a log:
    #    "unlinked"    its live records are synced and indexed elsewhere, and the file is removed
    #    "gone"        the file did not exist
    #    "open"        the log may still be written, or its index commit is not done: nothing was changed
    #    "live"        unlink_log only: the index points into the log, nothing was changed
    #    "orphans"     it has entries of existing ledgers that the index does not have: kept; alarm, rebuild the index
    #    "torn"        it ends inside a record, and the index points behind that: kept; alarm
    #    "disagrees"   the index describes another record than the one found: kept; alarm, rebuild the index
    #    "no space"    there was no space for the target log or the index: kept; what was indexed so far has moved
    #    "quarantined" it has older copies of entries of a ledger in quarantine: kept until that is lifted
    #    "repaired"    the index was replaced by its readable part meanwhile: kept for another time
    #    "unreadable"  the file cannot be read, or is not an entry log: kept; alarm
    #    "stopped"     stop() was called: kept; what was indexed so far has moved
    outcome: str
    moved_records: int
    moved_bytes: int
    dropped_records: int
    dropped_bytes: int
    file_bytes: int  # freed if "unlinked"
    torn_at: int | None
    ledger: int | None  # of the record because of which the log is kept
    entry: int | None
    offset: int | None  # of that record

class DirectoryCollector:
    """Garbage collection in one ledger directory. One thread; set_rate, pause, resume, stop, progress: any thread.

    OSError: the index cannot be read or written; a failed write or sync has already set the fatal latch.
    """

    directory: str
    def __new__(cls, stores: StorageEngine, handle: DirectoryStore) -> Self: ...
    # Every ledger of this directory, ascending. Call it before listing the ledgers in the metadata.
    def ledger_ids(self) -> NDArray[np.int64]: ...
    # Ids and sizes of the closed logs, which never change again. Call it before live_bytes, whose result is valid only
    # for these.
    def closed_logs(self) -> ClosedLogs: ...
    # Walk over the index once; the result is exact for every log that was closed before the call.
    def live_bytes(self) -> LiveBytes: ...
    # OSError if the file cannot be read, ValueError if it is not an entry log.
    def log_ledgers(self, log_id: int) -> LogLedgers: ...
    # Whether the index points at a record of this log that ends after `offset`.
    def points_into(self, log_id: int, offset: int = 0) -> bool: ...
    # Delete ledgers from the index, then from memory; return how many were known. Request a checkpoint first, so that
    # no replay restores them (LedgerStorage.checkpoint returned True). ENOSPC: those deleted so far stay deleted.
    def delete_ledgers(self, ids: NDArray[np.int64] | Sequence[int]) -> int: ...
    # Drop fences kept for longer than `kept_ms`; return how many.
    def drop_fences(self, kept_ms: int) -> int: ...
    # Remove a log into which the index does not point, once every entry in it was verified.
    def unlink_log(self, log_id: int) -> Collected: ...
    # Move the records that the index points at to the directory's compaction log, then remove the log.
    def compact(self, log_id: int) -> Collected: ...
    # Close the compaction log with its ledgers map; the next compaction begins another.
    def finish(self) -> None: ...
    # Limit the bytes of source logs per second (0: no limit); effective at once, even during a compaction.
    def set_rate(self, bytes_per_s: int) -> None: ...
    # Make a running compaction wait, with its log open, until resume or stop.
    def pause(self) -> None: ...
    def resume(self) -> None: ...
    # Stop for good: a running call ends with "stopped" within one batch, and so does every later call.
    def stop(self) -> None: ...
    # log_id (-1: none), log_bytes, log_done, moved_bytes, dropped_bytes, logs_unlinked, bytes_unlinked, paused, rate.
    def progress(self) -> dict[str, int]: ...
    # Close it before the DirectoryStore.
    def close(self) -> None: ...
