"""The thread `garbage` of a bookie: when a cycle runs, what may run in it, its status, and an operator's commands.

A cycle deletes ledgers, measures and unlinks logs, and then runs a compaction: minor or major, never both. A
compaction may take hours, so between two of its logs ledgers are deleted and logs are measured as often as cycles
would otherwise begin. Any thread may call `force`, `suspend`, `resume`, `disk` and `status`; everything else happens
on `garbage`.
"""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bookie._fast.base.process import show_name
from bookie.storage import descriptors
from bookie.storage.disk_level import DiskLevel
from bookie.storage.garbage.contracts import Directory, Metadata
from bookie.storage.garbage.counters import Counters, OfDirectory
from bookie.storage.garbage.ledgers import Alarm, LedgerCollector
from bookie.storage.garbage.logs import Kind, LogCollector, Progress
from bookie.storage.garbage.schedule import Schedule, Work
from bookie.storage.garbage.settings import GarbageSettings

__all__ = ["Garbage", "Status"]

WORK_OF = {Kind.MINOR: Work.MINOR, Kind.MAJOR: Work.MAJOR}
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Order:
    """What the next cycle must do. With nothing set, the schedule decides."""

    major: bool = False
    minor: bool = False
    mass_deletion: bool = False
    forced: bool = False

    def __or__(self, other: "Order") -> "Order":
        return Order(
            self.major or other.major,
            self.minor or other.minor,
            self.mass_deletion or other.mass_deletion,
            self.forced or other.forced,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """The status for an operator. Times are milliseconds since the epoch; 0 means not since the start."""

    running: bool
    doing: str
    """A description with progress; empty between cycles."""
    compacting: str
    """`minor`, `major`, or empty."""
    progress: Progress
    forced: bool
    """A forced cycle is running or pending."""
    major_suspended: bool
    minor_suspended: bool
    """Suspended by an operator; full disks (`disks`) suspend compactions independently."""
    disks: tuple[DiskLevel, ...]
    last_cycle_ms: int
    last_minor_ms: int
    last_major_ms: int
    alarm: Alarm | None
    counters: dict[str, int | float]


class Garbage:
    """Garbage collection of a bookie. `start` it, then `stop` it, which is idempotent and ends a running compaction."""

    def __init__(
        self,
        settings: GarbageSettings,
        directories: Sequence[Directory],
        metadata: Metadata,
        *,
        own_instance: Callable[[], str | None],
        checkpoint: Callable[[], bool],
        log_bytes_max: int,
        times: Path | None = None,
    ) -> None:
        """Create it without starting it. `times` is the directory in which the schedule is kept; None keeps none."""
        self._settings = settings
        self._directories = tuple(directories)
        self._counters = Counters([OfDirectory() for _ in self._directories])
        self._stopping = threading.Event()
        self._ledgers = LedgerCollector(
            settings, self._directories, metadata, own_instance, checkpoint, self._counters, self._stopping
        )
        self._logs = LogCollector(settings, self._directories, self._counters, self._may_run, log_bytes_max)
        self._thread = threading.Thread(target=self._run, name="garbage", daemon=True)
        self._changed = threading.Condition()
        # Guarded by _changed:
        self._order = Order()
        self._suspended: set[Kind] = set()
        self._disks = [DiskLevel.OK] * len(self._directories)
        self._begun = 0
        self._ended = 0
        self._running = Order()
        # Of thread `garbage`, read by anybody:
        self._schedule = Schedule(times, {
            Work.CYCLE: settings.wait_ms / 1000,
            Work.MINOR: settings.minor_interval_s,
            Work.MAJOR: settings.major_interval_s,
            Work.OVER_REPLICATED: settings.over_replicated_interval_ms / 1000,
        })  # fmt: skip

    def start(self) -> None:
        """Start the thread. Its first cycle comes after a pause, or the rest of one that a restart interrupted."""
        self._thread.start()

    def stop(self) -> None:
        """End a running cycle where it stands, and the thread. Idempotent."""
        self._stopping.set()
        with self._changed:
            self._changed.notify_all()
        for directory in self._directories:
            directory.stop()
        if self._thread.is_alive():
            self._thread.join()

    def threads(self) -> tuple[threading.Thread, ...]:
        """Return the thread, which must not end before `stop`."""
        return (self._thread,)

    # Commands of an operator. Any thread.

    def force(self, *, major: bool = True, minor: bool = True, mass_deletion: bool = False) -> int:
        """Begin a cycle now, or after the running one, and return its number for `wait`.

        `mass_deletion` confirms that the ledgers which the alarm counts shall be deleted. Suspended compactions stay
        suspended.
        """
        with self._changed:
            self._order |= Order(major, minor, mass_deletion, forced=True)
            self._changed.notify_all()
            return self._begun + 1

    def wait(self, cycle: int, timeout_s: float) -> bool:
        """Wait until this cycle has ended. Return False after a timeout."""
        with self._changed:
            return self._changed.wait_for(lambda: self._ended >= cycle or self._stopping.is_set(), timeout_s)

    def suspend(self, *, major: bool = False, minor: bool = False) -> None:
        """Begin no more compactions of these kinds, and end a running one after its current log."""
        with self._changed:
            self._suspended |= _kinds(major=major, minor=minor)

    def resume(self, *, major: bool = False, minor: bool = False) -> None:
        """Undo `suspend` for these kinds."""
        with self._changed:
            self._suspended -= _kinds(major=major, minor=minor)

    def disk(self, levels: Sequence[DiskLevel]) -> None:
        """Set the state of each directory's disk.

        A disk that has just become full triggers a cycle, because deleting ledgers and dead logs needs no space.
        """
        with self._changed:
            filled = any(
                after is DiskLevel.FULL and before is not DiskLevel.FULL
                for before, after in zip(self._disks, levels, strict=True)
            )
            self._disks = list(levels)
            if filled:
                compact = self._settings.collect_when_full
                self._order |= Order(major=compact, minor=compact, forced=True)
                self._changed.notify_all()

    def status(self) -> Status:
        """Return what runs, what ran, and what is suspended."""
        with self._changed:
            running = self._begun > self._ended
            forced = self._order.forced or self._running.forced
            suspended, disks = set(self._suspended), tuple(self._disks)
        kind = self._logs.compacting
        return Status(
            running=running,
            doing=self._ledgers.doing or (f"{kind.value} compaction" if kind else ""),
            compacting=kind.value if kind else "",
            progress=self._logs.progress(),
            forced=forced,
            major_suspended=Kind.MAJOR in suspended,
            minor_suspended=Kind.MINOR in suspended,
            disks=disks,
            last_cycle_ms=self._schedule.last_ms(Work.CYCLE),
            last_minor_ms=self._schedule.last_ms(Work.MINOR),
            last_major_ms=self._schedule.last_ms(Work.MAJOR),
            alarm=self._ledgers.alarm,
            counters=self._counters.stats(),
        )

    def stats(self) -> dict[str, int | float]:
        """Return counters and gauges. `gc_alarm` is 1 while the alarm stops the deletion of ledgers."""
        return {**self._counters.stats(), "gc_alarm": int(self._ledgers.alarm is not None)}

    def stats_of_directories(self) -> list[dict[str, int | float]]:
        """Return the counters of each ledger directory, in configured order."""
        return self._counters.of_directories()

    # The body of the thread.

    def _run(self) -> None:
        show_name("garbage")
        while (order := self._next_order()) is not None:
            begun = time.monotonic()
            try:
                self._cycle(order)
            except OSError as error:
                if not descriptors.are_used_up(error):
                    raise
                log.warning(
                    "no file descriptor is left; garbage collection resumes in the next cycle", extra={"error": error}
                )
            finally:
                self._counters.thread_ms += int(1000 * (time.monotonic() - begun))
                self._schedule.done(Work.CYCLE)
                with self._changed:
                    self._ended, self._running = self._begun, Order()
                    self._changed.notify_all()

    def _next_order(self) -> Order | None:
        """Wait until a cycle is due or ordered. Return None when the bookie stops."""
        with self._changed:
            self._changed.wait_for(lambda: self._stopping.is_set() or self._order.forced, self._schedule.pause_s())
            if self._stopping.is_set():
                return None
            self._running, self._order = self._order, Order()
            self._begun += 1
            return self._running

    def _cycle(self, order: Order) -> None:
        if self._disk_bad():
            log.error("garbage collection is skipped, because the disk of a ledger directory is unusable")
            return
        self._collect(order)
        kind = self._kind_due(order)
        if kind is not None and not self._stopping.is_set():
            self._compact(kind)
        self._counters.cycles += 1

    def _collect(self, order: Order) -> None:
        """Run everything of a cycle except its compaction."""
        begun = time.monotonic()
        over_replicated = self._settings.over_replicated_interval_ms > 0 and self._schedule.due(Work.OVER_REPLICATED)
        if self._ledgers.run(over_replicated=over_replicated, mass_deletion=order.mass_deletion) and over_replicated:
            self._schedule.done(Work.OVER_REPLICATED)
        self._counters.ledgers_ms += int(1000 * (time.monotonic() - begun))
        if not self._stopping.is_set():
            self._logs.measure(look_again=order.forced)

    def _kind_due(self, order: Order) -> Kind | None:
        """Return the kind of compaction that is due. Major comes first, because it includes the work of a minor one."""
        settings = self._settings
        for kind, wanted, enabled, threshold in (
            (Kind.MAJOR, order.major, settings.major_enabled, settings.major_threshold),
            (Kind.MINOR, order.minor, settings.minor_enabled, settings.minor_threshold),
        ):
            forced = wanted and threshold > 0 and (enabled or settings.force_allows_disabled)
            due = forced or (enabled and self._schedule.due(WORK_OF[kind]))
            if due and any(self._may_run(kind, at) for at in range(len(self._directories))):
                return kind
        return None

    def _compact(self, kind: Kind) -> None:
        begun, settings = time.monotonic(), self._settings
        collecting_s = 0.0

        def collect() -> None:
            nonlocal collecting_s
            if self._disk_bad():
                return  # `_may_run` ends the compaction
            before = time.monotonic()
            self._collect(Order())
            collecting_s += time.monotonic() - before

        major = kind is Kind.MAJOR
        ms_max = settings.major_ms_max if major else settings.minor_ms_max
        threshold = settings.major_threshold if major else settings.minor_threshold
        self._logs.compact(kind, threshold, None if ms_max <= 0 else begun + ms_max / 1000, collect)
        ended = time.monotonic()
        if self._stopping.is_set():
            return  # interrupted: it is due again after the start
        self._schedule.done(*((Work.MINOR, Work.MAJOR) if major else (Work.MINOR,)))
        if major:
            self._counters.major_compactions += 1
        else:
            self._counters.minor_compactions += 1
        self._counters.compact_ms += int(1000 * (ended - begun - collecting_s))

    def _may_run(self, kind: Kind, number: int) -> bool:
        """Return whether the operator, the directory's disk and the state of the bookie allow this compaction."""
        with self._changed:
            if kind in self._suspended or self._stopping.is_set():
                return False
            disk = self._disks[number]
        if disk is DiskLevel.FULL:
            return self._settings.collect_when_full
        return disk is DiskLevel.OK or (disk is DiskLevel.WARN and kind is Kind.MINOR)

    def _disk_bad(self) -> bool:
        with self._changed:
            return DiskLevel.BAD in self._disks


def _kinds(*, major: bool, minor: bool) -> set[Kind]:
    return {kind for kind, named in ((Kind.MAJOR, major), (Kind.MINOR, minor)) if named}
