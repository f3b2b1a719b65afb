"""The second half of a cycle: measure entry logs, unlink those without live entries, and compact those with few.

A log that cannot be read, or that contradicts the index, is reported in a log line, kept and skipped; the cycle goes
on.

Thread `garbage`, which does this in all directories at the same time (`everywhere`); any thread may call `progress`.
"""

import logging
import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial

import numpy as np

from bookie.storage import descriptors
from bookie.storage.garbage.choice import LogUse
from bookie.storage.garbage.contracts import Directory, Outcome, Work
from bookie.storage.garbage.counters import Counters
from bookie.storage.garbage.everywhere import everywhere
from bookie.storage.garbage.settings import GarbageSettings
from bookie.storage.garbage.steps import step

__all__ = ["Kind", "LogCollector", "Progress"]

COMPACTING_TIMES = 4
"""A compaction runs for at least this many times the duration of the last collection between two of its logs."""
log = logging.getLogger(__name__)


class Kind(Enum):
    """The two kinds of compaction, which differ in threshold and interval."""

    MINOR = "minor"
    MAJOR = "major"


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of the running compaction, or of the last one."""

    logs_done: int = 0
    logs_in_all: int = 0
    log_id: int = -1
    """The log being compacted, or -1; if there are several, that of the first directory."""
    bytes_done: int = 0
    bytes_in_log: int = 0
    """Bytes of the logs being compacted read so far, and in total."""


class LogCollector:
    """Measures and compacts logs: call `measure`, then `compact` at most once. `may_run(kind, directory number)` is
    called before each log, by any thread.
    """

    def __init__(
        self,
        settings: GarbageSettings,
        directories: Sequence[Directory],
        counters: Counters,
        may_run: Callable[[Kind, int], bool],
        log_bytes_max: int,
    ) -> None:
        self._settings = settings
        self._directories = directories
        self._counters = counters
        self._may_run = may_run
        self._full_bytes = log_bytes_max if settings.usage_of_full_log else 0
        self._uses: list[LogUse] = []
        self._lock = threading.Lock()
        self._kept: set[tuple[int, int]] = set()  # guarded by _lock
        self._logs_done = [0] * len(directories)
        self._logs_in_all = 0
        self.compacting: Kind | None = None

    def progress(self) -> Progress:
        """Return the progress of the running compaction, or of the last one. Any thread."""
        each = [directory.progress() for directory in self._directories] if self.compacting else []
        ids, done, total = zip(*([one for one in each if one[0] >= 0] or [(-1, 0, 0)]), strict=True)
        return Progress(sum(self._logs_done), self._logs_in_all, ids[0], sum(done), sum(total))

    def measure(self, *, look_again: bool = False) -> None:
        """Sum up the live bytes of each closed log, and unlink the logs without any.

        With `look_again`, also try again the logs that were kept because something was wrong with them.
        """
        if look_again:
            self._kept.clear()
            self._counters.kept_logs = 0
        begun = time.monotonic()
        self._uses = everywhere(len(self._directories), lambda number: self._use_of(self._directories[number]))
        self._counters.usage_ms += int(1000 * (time.monotonic() - begun))
        for use, counters in zip(self._uses, self._counters.directories, strict=True):
            counters.logs = use.log_ids.size
            counters.log_bytes, counters.live_bytes = int(use.bytes.sum()), int(use.live.sum())
            counters.buckets = use.buckets()
        everywhere(len(self._uses), self._unlink_dead)

    def _use_of(self, directory: Directory) -> LogUse:
        """Return the usage of a directory's logs, or none if the index cannot be read, so that no log looks dead."""
        try:
            return directory.log_use()
        except OSError as error:
            facts = {"directory": directory.path, "why": error}
            log.error("no entry log is collected, because the index cannot be read", extra=facts)
            none = np.empty(0, np.int64)
            return LogUse(none, none, none)

    def compact(self, kind: Kind, threshold: float, deadline: float | None, collect: Callable[[], None]) -> None:
        """Compact the measured logs below `threshold`, emptiest first, and begin none after `deadline` (monotonic
        seconds).

        As often as cycles begin, all directories pause between two logs, and `collect` deletes ledgers and measures
        the logs again, so that entries deleted meanwhile are not copied and logs without live entries are skipped. No
        log is added to the lists, so the compaction ends however much is written.
        """
        waiting = [use.below(threshold, self._full_bytes) for use in self._uses]
        self._logs_done = [0] * len(waiting)
        self._logs_in_all = sum(map(len, waiting))
        self.compacting = kind
        log.info("compaction begins", extra={"kind": kind.value, "logs": self._logs_in_all})
        pause_s = self._settings.wait_ms / 1000
        last = math.inf if deadline is None else deadline
        due = time.monotonic() + pause_s
        try:
            while True:
                everywhere(len(waiting), partial(self._compact_until, min(due, last), kind, waiting))
                begun = time.monotonic()
                if not any(waiting) or begun >= last:
                    break
                collect()
                ended = time.monotonic()
                due = ended + max(pause_s, COMPACTING_TIMES * (ended - begun))
                waiting = self._still(waiting, threshold)
                self._logs_in_all = sum(self._logs_done) + sum(map(len, waiting))
        finally:
            facts = {"kind": kind.value, "logs": sum(self._logs_done), "total": self._logs_in_all}
            log.info("compaction ends", extra=facts)
            self.compacting = None

    def _compact_until(self, end: float, kind: Kind, waiting: list[list[int]], number: int) -> None:
        """Compact the waiting logs of a directory until `end` (monotonic seconds). None waits if it must not go on."""
        mine = waiting[number]
        while mine and time.monotonic() < end:
            if not self._may_run(kind, number) or not self._compact(number, mine.pop(0)):
                mine.clear()
                return
            self._logs_done[number] += 1

    def _still(self, waiting: list[list[int]], threshold: float) -> list[list[int]]:
        """Return those of the logs that the last measurement found below the threshold, in its order."""
        each = zip(map(frozenset, waiting), self._uses, strict=True)
        return [[log_id for log_id in use.below(threshold, self._full_bytes) if log_id in ids] for ids, use in each]

    def _compact(self, number: int, log_id: int) -> bool:
        """Compact one log, and return whether to go on with the next log of this directory."""
        directory = self._directories[number]
        work = self._work(number, log_id, directory.compact)
        if work.outcome is Outcome.DONE:
            counters = self._counters.directories[number]
            counters.compacted_logs += 1
            counters.compaction_bytes += work.freed_bytes
            step("log compacted")
        elif work.outcome is Outcome.NO_SPACE:
            log.warning("compaction ends, because the disk is full", extra={"directory": directory.path})
        return work.outcome in (Outcome.DONE, Outcome.GONE, Outcome.KEPT)

    def _unlink_dead(self, number: int) -> None:
        for log_id in self._uses[number].dead():
            self._unlink(number, log_id)

    def _unlink(self, number: int, log_id: int) -> None:
        work = self._work(number, log_id, self._directories[number].unlink_log)
        if work.outcome is Outcome.DONE:
            self._counters.directories[number].deletion_bytes += work.freed_bytes
            step("dead log unlinked")

    def _work(self, number: int, log_id: int, call: Callable[[int], Work]) -> Work:
        """Call `call` for a log, and remember the log if it is kept, so that only a forced cycle tries it again."""
        if (number, log_id) in self._kept:
            return Work(Outcome.GONE)
        try:
            work = call(log_id)
        except OSError as error:
            descriptors.pass_on_used_up(error)
            self._counters.directories[number].failed_deletions += 1
            work = Work(Outcome.KEPT, why=f"{error}")
        if work.outcome is Outcome.KEPT:
            with self._lock:
                self._kept.add((number, log_id))
                self._counters.kept_logs = len(self._kept)
            facts = {"directory": self._directories[number].path, "log": f"{log_id:x}.log", "why": work.why}
            log.error("an entry log cannot be collected and is kept", extra=facts)
        return work
