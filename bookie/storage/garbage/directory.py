"""A ledger directory for garbage collection: the compiled module `store.gc.collector`, with its outcomes as words.

One thread at a time; any thread may call `progress` and `stop`.
"""

import numpy as np

from bookie._fast.store.gc.collector import Collected, DirectoryCollector
from bookie.storage.garbage.choice import LogUse
from bookie.storage.garbage.contracts import Outcome, Work
from bookie.storage.garbage.decision import Ids
from bookie.storage.garbage.settings import GarbageSettings

__all__ = ["LedgerDirectory"]

HEADER_BYTES = 1024
RECORD_BYTES_GUESS = 1024
"""The assumed mean size of a record, to convert a limit in entries to bytes before any was moved."""
REBUILD = "the index does not match the log: rebuild the index of this directory"
OUTCOMES = {
    "unlinked": (Outcome.DONE, ""),
    "gone": (Outcome.GONE, ""),
    "open": (Outcome.GONE, ""),
    "live": (Outcome.GONE, ""),
    "orphans": (Outcome.KEPT, f"it holds entries of existing ledgers that are missing from the index; {REBUILD}"),
    "torn": (Outcome.KEPT, f"it ends inside a record, but the index points beyond that; {REBUILD}"),
    "disagrees": (Outcome.KEPT, f"the index points at a record other than the one that is there; {REBUILD}"),
    "no space": (Outcome.NO_SPACE, "no space on the disk"),
    "unreadable": (Outcome.KEPT, "it cannot be read, or is not an entry log: check the disk and the file"),
    "quarantined": (Outcome.KEPT, "it holds entries of a quarantined ledger: see bkadmin quarantine"),
    "repaired": (Outcome.GONE, ""),
    "stopped": (Outcome.STOPPED, ""),
}
"""A log that is open, or that the index points into again, does not concern this cycle: it counts as gone. Nor does one
that was read while a repair replaced the index, which may have lost what points into it.
"""


class LedgerDirectory:
    """Implements `contracts.Directory`. The creator of the collector closes it."""

    def __init__(self, collector: DirectoryCollector, settings: GarbageSettings) -> None:
        self._collector = collector
        self._settings = settings
        self._bytes = self._records = 0
        self._set_rate()

    @property
    def path(self) -> str:
        return self._collector.directory

    def ledger_ids(self) -> Ids:
        return self._collector.ledger_ids()

    def log_use(self) -> LogUse:
        closed = self._collector.closed_logs()
        found = self._collector.live_bytes()
        live = np.zeros(closed.ids.size, np.int64)
        if found.ids.size:
            at = np.minimum(np.searchsorted(found.ids, closed.ids), found.ids.size - 1)
            live = np.where(found.ids[at] == closed.ids, found.live[at], 0)
        return LogUse(closed.ids, np.maximum(closed.file_bytes - HEADER_BYTES, 0), live)

    def delete_ledgers(self, ledgers: Ids) -> None:
        self._collector.delete_ledgers(ledgers)

    def drop_fences(self, kept_ms: int) -> int:
        return self._collector.drop_fences(kept_ms)

    def unlink_log(self, log_id: int) -> Work:
        return _work(self._collector.unlink_log(log_id))

    def compact(self, log_id: int) -> Work:
        collected = self._collector.compact(log_id)
        self._bytes += collected.moved_bytes + collected.dropped_bytes
        self._records += collected.moved_records + collected.dropped_records
        self._set_rate()
        return _work(collected)

    def progress(self) -> tuple[int, int, int]:
        found = self._collector.progress()
        return found["log_id"], found["log_done"], found["log_bytes"]

    def stop(self) -> None:
        self._collector.stop()

    def _set_rate(self) -> None:
        """Set the rate; a limit in entries is converted with the mean size of the entries seen so far."""
        settings = self._settings
        rate = settings.rate_bytes_per_s
        if not settings.throttle_by_bytes:
            mean = self._bytes // self._records if self._records else RECORD_BYTES_GUESS
            rate = settings.rate_entries_per_s * max(mean, 1)
        self._collector.set_rate(rate)


def _work(collected: Collected) -> Work:
    outcome, why = OUTCOMES[collected.outcome]
    if collected.ledger is not None:
        why += f" (ledger {collected.ledger}, entry {collected.entry}, offset {collected.offset})"
    return Work(outcome, collected.file_bytes if outcome is Outcome.DONE else 0, why)
