"""The ledger storage of one bookie: the facade that the server uses.

This module holds policy only: which directories there are, and in which order things are opened, replayed, run and
stopped. The compiled modules move the bytes, on threads that this module starts and joins.
"""

import errno
import logging
import threading
from collections.abc import Callable, Collection, Iterable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from bookie._fast.base import fatal
from bookie._fast.base.file import Files
from bookie._fast.base.op_stats import OpView
from bookie._fast.entrylog import set as log_set
from bookie._fast.journal.commit import JournalCommitter
from bookie._fast.store import quarantine
from bookie._fast.store.checkpoint import Checkpointer
from bookie._fast.store.gc.collector import DirectoryCollector
from bookie._fast.store.gc.scrub import Scrubber
from bookie._fast.store.ledger_table import LEDGER_BYTES
from bookie._fast.store.read_pool import ReadPoolWorkers
from bookie._fast.store.read_pool import bytes_max as read_pool_bytes
from bookie._fast.store.storage import DirectoryStore, StorageEngine
from bookie.durable import make_directories, sync_directory
from bookie.errors import RequestTimeout, StartRefused
from bookie.metrics.family import Labels
from bookie.storage.backlog import BacklogNews, backlog_limits
from bookie.storage.bad_files import has_sound_index, refuse_meta_pages, tell_bad_logs
from bookie.storage.essential_threads import EssentialThreads
from bookie.storage.flush_threads import FlushThreads
from bookie.storage.index_mending import mend_index
from bookie.storage.index_repair import IndexRepair
from bookie.storage.journals import open_journals
from bookie.storage.layout import INDEX_NAME, current, next_log_id
from bookie.storage.marks import find_marks
from bookie.storage.recovery import Progress, RecoveryReport, Tolerance, settle_tails
from bookie.storage.replays import Replay
from bookie.storage.reserved_blocks import give_back_blocks
from bookie.storage.settings import JournalSettings, StorageSettings
from bookie.storage.takeover import take_over
from bookie.storage.takeover.disks import was_taken_over
from bookie.storage.tools.index_swap import new_index
from bookie.storage.tools.progress import no_progress

__all__ = ["LedgerStorage"]

log = logging.getLogger(__name__)

INDEX_DAMAGED = -30796
"""MDB_CORRUPTED: the error number with which LMDB refuses to open an index whose pages are damaged."""

COMPACTION_BYTES = 8 << 20
"""Memory for compaction in one directory, besides one record: a window over the source log, the buffer of the target
log, and tables of runs and of moved records."""
SCRUB_BYTES = 8 << 20
"""Memory of the scrub: a window over the log being read, the rows of its records, and a table of runs."""

NEWS_AT_A_TIME = 100
"""Quarantined ledgers that are logged in one second; the others are logged in the seconds that follow."""

PUT_OFF_REMEDY = "nothing is lost: the entries are in memory and in the journal; if this persists, see docs/fatal.md"

QUARANTINE_REMEDY = (
    "its stored entries are served, writes to it are refused, and no entry of it is reported as nonexistent; copy the "
    "missing entries from its replicas (docs/troubleshoot.md), then run bkadmin quarantine lift"
)


class LedgerStorage:
    """Adds, fences and reads on the configured directories. Call `open`, then `start`; `stop` is idempotent."""

    def __init__(self, storage: StorageSettings, journal: JournalSettings, *, files: Files | None = None) -> None:
        self.storage = storage
        self.journal = journal
        self.files = files if files is not None else Files()
        self.stores: StorageEngine | None = None
        self.read_only = False
        self.pool: ReadPoolWorkers | None = None
        self.checkpoints: Checkpointer | None = None
        self.on_failed_read: Callable[[str, int, int], None] = lambda _directory, _ledger, _entry: None
        """Called with directory, ledger and entry of a read that the disk failed, at most once a second for each."""
        self._directory_stores: list[DirectoryStore] = []
        self._collectors: list[DirectoryCollector] = []
        self._scrubs: list[Scrubber] = []
        self.repairs: list[IndexRepair] = []
        self._journals: list[JournalCommitter] = []
        self._threads = EssentialThreads()
        self._flush_threads = FlushThreads()
        self._java_locks = ExitStack()
        self._backlog = BacklogNews()
        self._started = False
        self._stopped = False
        self.flushed = False
        """Whether entry logs and index hold every accepted entry. False from `start` to the last checkpoint."""
        self.journaled = False
        """After `stop`: whether everything that was not flushed is in the journal, and synced."""

    def open(
        self,
        progress: Progress | None = None,
        scan_progress: Progress = no_progress,
        *,
        distrusted: bool = False,
        same_boot: bool = False,
    ) -> RecoveryReport:
        """Open the indexes and journals, replay what the last process did not flush, and flush it.

        Where a directory has a Java bookie's index but none of ours, build ours first. With `distrusted`, the journal
        was not synced and may lack any entry, and the ledgers that it may concern are already in limbo. With
        `same_boot`, the machine has not been restarted since the journal was written, so no write is missing from it.

        Raises StartRefused for a problem that an operator must solve, and OSError for a failed system call.
        """
        ledger_dirs = [current(path) for path in self.storage.ledger_directories]
        index_dirs = [current(path) for path in self.storage.index_directories] or ledger_dirs
        journal_dirs = [current(path) for path in self.journal.directories]
        if len(index_dirs) != len(ledger_dirs):
            raise StartRefused(
                f"indexDirectories has {len(index_dirs)} paths and ledgerDirectories {len(ledger_dirs)}; give as many"
            )
        for path in (*ledger_dirs, *index_dirs, *journal_dirs):
            make_directories(path)
        self._java_locks = take_over(
            ledger_dirs,
            index_dirs,
            journal_dirs,
            map_bytes=self.storage.index_map_bytes,
            fence_all=self.storage.fence_all,
            progress=scan_progress,
        )
        self._directory_stores = [
            self._open_store(ledger, index / INDEX_NAME) for ledger, index in zip(ledger_dirs, index_dirs, strict=True)
        ]
        self._journals = [self._make_journal(path) for path in journal_dirs]
        self.stores = self._make_stores()
        for store, index in zip(self._directory_stores, index_dirs, strict=True):
            store.load_ledgers()
            made = index / INDEX_NAME, self.storage.index_map_bytes
            self.repairs.append(IndexRepair(self.stores, store, Path(store.directory), *made))
        taken_over = any(was_taken_over(path / INDEX_NAME) for path in index_dirs)
        for path in ledger_dirs:
            sync_directory(path)  # the last process may have died before its marks were durable
        marks = find_marks(ledger_dirs, len(journal_dirs), taken_over=taken_over)
        self.checkpoints = Checkpointer(self.stores, interval_ms=self.storage.flush_interval_ms, marks=marks)
        tolerance = Tolerance(skip_damaged=self.storage.skip_damaged_journal or distrusted, same_boot=same_boot)
        replay = Replay(self.stores, self.files, ledger_dirs, journal_dirs, marks, tolerance=tolerance)
        try:
            self._flush_threads.start(self.stores, len(self._directory_stores))
            return self._recover(self.checkpoints, replay, journal_dirs, progress)
        except BaseException:
            self._flush_threads.stop()
            raise

    def _recover(
        self, checkpoints: Checkpointer, replay: Replay, journal_dirs: list[Path], progress: Progress | None
    ) -> RecoveryReport:
        """Replay what the last process did not flush, flush it, and open the journals."""
        report = replay.run(progress)
        self._limit_ledgers()
        checkpoints.catch_up = replay.go_on
        self._flush_at_start(checkpoints.flush_stores)
        opened = open_journals(self._journals, journal_dirs)
        # The marks now name the new, empty files, so older files, torn or not, are never replayed again.
        self.flushed = self._flush_at_start(checkpoints.flush_alone)
        if not (self.flushed and opened):
            settle_tails(report)
        count = len(self._directory_stores)
        for store in self._directory_stores:
            store.put_in_slices(self.storage.index_slice_ledgers, self.storage.index_pending_bytes // count)
            if self.storage.keep_flushed:
                store.keep_flushed(self.storage.write_cache_bytes // count // 2)
        if not self.flushed:
            full = ", ".join(map(str, sorted(self.full_directories())))
            log.error("started on a full disk: read-only, with unflushed entries in memory", extra={"full": full})
        return report

    def _make_stores(self) -> StorageEngine:
        return StorageEngine(
            self._directory_stores,
            self._journals,
            self.files,
            write_data=self.journal.write_data,
            readahead_bytes=self.storage.readahead_bytes,
            readahead_entries=self.storage.readahead_entries,
            readahead_policy=self.storage.readahead_policy,
            adaptive_readahead=self.storage.adaptive_readahead,
            uncached_bytes=self.storage.uncached_read_bytes,
            flush_bytes=self._flush_bytes(),
        )

    def _flush_bytes(self) -> int:
        """Return the bytes in a half at which it is flushed: a little less if halves are kept, so that four fit."""
        most = min(self.storage.write_cache_bytes // len(self._directory_stores) // 4, self.storage.flush_bytes)
        return most - most // 16 if self.storage.keep_flushed else most

    def _limit_ledgers(self) -> None:
        most = max(1, self.storage.ledgers_max // len(self._directory_stores))
        for store in self._directory_stores:
            store.limit_ledgers(most)
            if (count := store.ledger_count()) > most:
                facts = {"directory": store.directory, "ledgers": count, "most": most}
                remedy = "raise dbStorage_maxLedgers: new ledgers are refused, and they use more memory than budgeted"
                log.warning("there are more ledgers than dbStorage_maxLedgers", extra={**facts, "remedy": remedy})

    def _open_store(self, directory: Path, index: Path) -> DirectoryStore:
        if not has_sound_index(index):
            with new_index(index, map_bytes=self.storage.index_map_bytes):
                pass  # the empty index appears as a whole, however its creation is interrupted
        tell_bad_logs(directory)
        give_back_blocks(directory)
        try:
            return self._make_store(directory, index)
        except OSError as error:
            refuse_meta_pages(index, error)
            if error.errno != INDEX_DAMAGED:
                raise
        mend_index(directory, index, self.storage.index_map_bytes)
        return self._make_store(directory, index)

    def _make_store(self, directory: Path, index: Path) -> DirectoryStore:
        count = len(self.storage.ledger_directories)
        return DirectoryStore(
            str(directory),
            str(index),
            self.files,
            write_cache_bytes=self.storage.write_cache_bytes // count,
            read_cache_bytes=self.storage.read_cache_bytes // count,
            read_segment_bytes=self.storage.read_segment_bytes,
            reread_table_bytes=self.storage.reread_table_bytes // count,
            index_map_bytes=self.storage.index_map_bytes,
            index_leaves=self.storage.index_leaves,
            next_log_id=next_log_id(directory),
            log_bytes_max=self.storage.log_bytes_max,
            open_logs_max=self.storage.open_logs_max,
            ledger_logs_max=self._ledger_logs_max(),
            log_idle_ms_max=self.storage.log_idle_ms_max,
        )

    def _ledger_logs_max(self) -> int:
        """Return the entry logs that one directory may have open at a time; 0 when all ledgers share one log."""
        if not self.storage.log_per_ledger:
            return 0
        return max(1, self.storage.ledger_logs_max // len(self.storage.ledger_directories))

    def _make_journal(self, directory: Path) -> JournalCommitter:
        settings = self.journal
        limits = backlog_limits(self.storage, settings, directory)
        return JournalCommitter(
            str(directory),
            self.files,
            buffer_bytes=settings.buffer_bytes,
            alignment_bytes=settings.alignment_bytes,
            file_bytes_max=settings.file_bytes_max,
            prealloc_bytes=settings.prealloc_bytes,
            backups_max=settings.backups_max,
            group_wait_ms=settings.group_wait_ms,
            group_bytes=settings.group_bytes,
            group_entries=settings.group_entries,
            flush_when_empty=settings.flush_when_empty,
            sync_data=settings.sync_data,
            reuse_files=settings.reuse_files,
            hurry_bytes=limits.hurry_bytes,
            backlog_bytes_max=limits.most_bytes,
        )

    def _flush_at_start(self, flush: Callable[[], None]) -> bool:
        """Flush and return True. On a full disk return False: replayed entries stay in memory and in the journal, and
        the bookie is read-only.

        If the flush finds the index damaged, salvage its readable part into a new index, and flush again.
        """
        try:
            flush()
        except OSError as error:
            if error.errno == errno.EUCLEAN and sum(repair.salvage_damaged() for repair in self.repairs):
                return self._flush_at_start(flush)
            if error.errno != errno.ENOSPC:
                raise
            return False
        return True

    def start(self) -> None:
        """Start the journal, flush, read and index repair threads. The storage must be open."""
        assert self.stores is not None
        assert self.checkpoints is not None
        self.pool = ReadPoolWorkers(self.stores, queue_max=self.storage.read_queue_max)
        for index, journal in enumerate(self._journals):
            self._threads.spawn(f"journal-{index}", journal.run)
            self._threads.spawn(f"journal-prepare-{index}", journal.run_prepare)
            if not self.journal.sync_data:
                self._threads.spawn(f"journal-sync-{index}", journal.run_sync)
        for directory in range(len(self.storage.ledger_directories)):
            for index in range(self.storage.read_threads_each):
                self._threads.spawn(f"read-{directory}-{index}", partial(self.pool.run, directory))
        self._threads.spawn("flush", self.checkpoints.run)
        for index, repair in enumerate(self.repairs):
            self._threads.spawn(f"index-repair-{index}", repair.run)
        self._started = True
        self.flushed = False

    def threads(self) -> Iterable[threading.Thread]:
        """Return the essential threads; none of them may end before `stop`."""
        return (*self._threads, *self._flush_threads)

    def stop(self) -> None:
        """Commit appended adds, take a checkpoint, join the threads and close. Call it after stopping the data port."""
        if self._stopped:
            return
        self._stopped = True
        for journal in self._journals:
            journal.stop()
        if self.pool is not None:
            self.pool.stop()
        if self.checkpoints is not None:
            self.checkpoints.stop()
        for repair in self.repairs:
            repair.stop()
        self._threads.join()
        if self._started and self.checkpoints is not None and fatal.wait(0) is None:
            self._last_checkpoint(self.checkpoints)
        self._flush_threads.stop()
        for journal in self._journals:
            journal.close()
        for collector in self._collectors:
            collector.close()
        for scrub in self._scrubs:
            scrub.close()
        for store in self._directory_stores:
            store.close()
        self._java_locks.close()

    def _last_checkpoint(self, checkpoints: Checkpointer) -> None:
        """Flush everything, so that the next start has nothing to replay. On a full disk the journal keeps the rest."""
        outcomes = [journal.sync() for journal in self._journals]  # sync every journal, even after one has failed
        synced = all(outcomes)
        self.journaled = synced and self.journal.write_data
        try:
            checkpoints.flush_alone()
        except OSError as error:
            what = "the next start replays the journal" if self.journaled else "entries that were not flushed are lost"
            log.error("the last checkpoint failed, %s error=%s", what, error)
        else:
            self.flushed = synced

    def checkpoint(self, within_s: float = float("inf")) -> bool:
        """Flush everything that was added before the call and move the mark. Return False if the disk is full."""
        assert self.checkpoints is not None
        try:
            return self.checkpoints.checkpoint(within_s)
        except TimeoutError as error:
            raise RequestTimeout(str(error)) from None

    def collectors(self) -> list[DirectoryCollector]:
        """Return the collectors for garbage collection, one per ledger directory. Its thread must end before `stop`."""
        assert self.stores is not None
        if not self._collectors:
            self._collectors = [DirectoryCollector(self.stores, store) for store in self._directory_stores]
        return self._collectors

    def scrubbers(self) -> list[Scrubber]:
        """Return the scrubbers, one per ledger directory. The thread that uses them must end before `stop`."""
        if not self._scrubs:
            self._scrubs = [Scrubber(store) for store in self._directory_stores]
        return self._scrubs

    def set_read_only(self, read_only: bool) -> None:  # noqa: FBT001  (its only meaning)
        """Refuse adds, except for high-priority recovery adds while there is room for them."""
        assert self.stores is not None
        self.stores.set_read_only(read_only)
        self.read_only = read_only

    def allow(self, *, high_priority: bool, any_full: bool = True, full: Collection[Path] = ()) -> None:
        """Set what the disks allow. `high_priority`: accept recovery adds while read-only. `any_full`: one full ledger
        directory makes the bookie read-only; otherwise only the directories in `full` refuse adds.
        """
        assert self.stores is not None
        held = [] if any_full else [i for i, path in enumerate(self.storage.ledger_directories) if path in full]
        self.stores.allow(high_priority=high_priority, any_full=any_full, held=held)

    def full_directories(self) -> set[Path]:
        """Return the ledger and journal directories whose last write found no space, and which refuse adds."""
        if self.stores is None:
            return set()
        stores, journals = self.stores.full()
        ledgers = self.storage.ledger_directories
        return {ledgers[i] for i in stores} | {self.journal.directories[i] for i in journals}

    def tell_damage(self) -> None:
        """Log damage and put-off flushes that are new since the last call. Any thread, one at a time."""
        self.tell_failed_reads()
        for repair in self.repairs:
            repair.tell()
        self.tell_quarantined()
        self.tell_put_off()
        journals = zip(self.journal.directories, self._journals, strict=False)
        self._backlog.tell(
            [
                (store.directory, stats)
                for store, (_, stats) in zip(self._directory_stores, self.store_stats(), strict=False)
            ],
            [(str(path), journal.stats()) for path, journal in journals],
        )

    def tell_put_off(self) -> None:
        """Log one line for each directory whose flush failed for another reason than a full disk."""
        for index, reason in self.checkpoints.take_put_off() if self.checkpoints is not None else ():
            facts = {"directory": self._directory_stores[index].directory, "reason": reason, "remedy": PUT_OFF_REMEDY}
            log.error("a flush failed and will be retried", extra=facts)

    def tell_quarantined(self) -> None:
        """Log one line for each ledger that was quarantined, or got a new reason, since the last call."""
        for store in self._directory_stores:
            for ledger, reasons in quarantine.news(store, NEWS_AT_A_TIME):
                facts = {"ledger": ledger, "directory": store.directory, "reason": "; ".join(reasons)}
                log.error("a ledger was quarantined", extra={**facts, "remedy": QUARANTINE_REMEDY})

    def tell_failed_reads(self) -> None:
        """Log one line for each directory whose disk failed reads since the last call. Any thread."""
        for store in self._directory_stores:
            failed = store.take_failed_reads()
            if failed is None:
                continue
            times, entries = failed
            facts = {"directory": store.directory, "times": times, "ledger": entries[0][0], "entry": entries[0][1]}
            for ledger, entry in entries:
                self.on_failed_read(store.directory, ledger, entry)
            remedy = "check the disk; check_logs and check_index of bookie.storage.tools list what is damaged"
            log.error("the disk failed reads, which were answered with EIO", extra={**facts, "remedy": remedy})

    def quarantined(self) -> list[quarantine.Quarantine]:
        """Return the quarantined ledgers and the reasons, in ascending order within each directory."""
        return [one for store in self._directory_stores for one in quarantine.listed(store)]

    def memory_budget(self) -> dict[str, int]:
        """Return the memory budgets in bytes by name. Their sum is the most that the storage may use."""
        return {
            "write_cache": self.storage.write_cache_bytes,
            "read_cache": self.storage.read_cache_bytes,
            "uncached_reads": self.storage.uncached_read_bytes,
            "read_queue": read_pool_bytes(self.storage.read_queue_max, len(self.storage.ledger_directories)),
            "reread_table": self.storage.reread_table_bytes,
            "entry_logs": len(self.storage.ledger_directories) * log_set.bytes_max(self._ledger_logs_max()),
            "ledger_table": LEDGER_BYTES * self.storage.ledgers_max,
            "compaction": (COMPACTION_BYTES + self.storage.frame_bytes_max) * len(self.storage.ledger_directories),
            "index": self.storage.index_bytes,
            "scrub": SCRUB_BYTES,
            "journal_buffers": self.journal.buffer_bytes * len(self.journal.directories),
        }

    def readahead(self) -> tuple[int, int]:
        """Return the bytes and entries that a read-ahead fetches now: the lowest values of all directories."""
        return min(store.readahead() for store in self._directory_stores)

    def store_stats(self) -> list[tuple[Labels, dict[str, int]]]:
        """Return, for each ledger directory, the labels that Apache BookKeeper gives it, and its counters."""
        repairs = [repair.stats() for repair in self.repairs] or [{} for _ in self._directory_stores]  # during `open`
        names = "held_back_bytes", "mark_age_s"
        waiting = self.stores.held_back() if self.checkpoints is not None and self.stores is not None else []
        backlogs = [dict(zip(names, one, strict=True)) for one in waiting] or [{} for _ in self._directory_stores]
        parts = enumerate(zip(list(self._directory_stores), repairs, backlogs, strict=False))
        return [(self._store_labels(index), store.stats() | repair | more) for index, (store, repair, more) in parts]

    def store_ops(self) -> list[tuple[Labels, dict[str, OpView | tuple[OpView, OpView]]]]:
        """Return the operation timings of each ledger directory; see `DirectoryStore.ops`."""
        return [(self._store_labels(index), store.ops()) for index, store in enumerate(list(self._directory_stores))]

    def journal_stats(self) -> list[tuple[Labels, dict[str, int]]]:
        """Return the counters of each journal, labelled by `journalIndex`."""
        return [
            ((("journalIndex", str(index)),), journal.stats()) for index, journal in enumerate(list(self._journals))
        ]

    def journal_ops(self) -> list[tuple[Labels, dict[str, OpView]]]:
        """Return the operation timings of each journal; see `JournalCommitter.ops`."""
        return [((("journalIndex", str(index)),), journal.ops()) for index, journal in enumerate(list(self._journals))]

    def _store_labels(self, index: int) -> Labels:
        indexes = self.storage.index_directories or self.storage.ledger_directories
        ledgers = current(self.storage.ledger_directories[index])
        return (("ledgerDir", str(ledgers)), ("indexDir", str(current(indexes[index]))))

    def stats(self) -> dict[str, int | float]:
        """Return the counters summed over all directories; those of journals are named `journal_*`."""
        total: dict[str, int | float] = {}
        stores = [stats for _, stats in self.store_stats()]
        journals = [{f"journal_{name}": value for name, value in stats.items()} for _, stats in self.journal_stats()]
        for part in (*stores, *journals):
            for name, value in part.items():
                total[name] = total.get(name, 0) + value
        if self.pool is not None:
            total |= self.pool.stats()
        if self.stores is not None:
            total |= self.stores.uncached()
        return total
