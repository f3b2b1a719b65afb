"""The thread `garbage`: what runs in a cycle, in which order, and what may delay it. The directory is scripted: it
has logs of a given usage, and records the calls. The tests of the compiled modules cover the bytes.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import pytest

from bookie.storage.disk_level import DiskLevel
from bookie.storage.garbage.choice import LogUse
from bookie.storage.garbage.collection import Garbage
from bookie.storage.garbage.contracts import Outcome, Standing, Work
from bookie.storage.garbage.decision import Ids
from bookie.storage.garbage.settings import GarbageSettings

END_S = 60.0
NEVER_MS = 3_600_000


Outcomes = dict[int, Outcome | OSError]


@dataclass
class Scripted:
    """A directory with logs by id: (bytes, live bytes)."""

    logs: dict[int, tuple[int, int]] = field(default_factory=dict)
    outcomes: Outcomes = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    hold: bool = False
    ledgers: list[int] = field(default_factory=lambda: [1])

    path = "scripted"

    def __post_init__(self) -> None:
        self.held, self.let_go = threading.Event(), threading.Event()

    def ledger_ids(self) -> Ids:
        return np.array(self.ledgers, np.int64)

    def delete_ledgers(self, ledgers: Ids) -> None:
        self.asked.append(f"delete {ledgers.tolist()}")

    def drop_fences(self, kept_ms: int) -> int:
        assert kept_ms > 0
        return 0

    def log_use(self) -> LogUse:
        rows = sorted((log_id, size, live) for log_id, (size, live) in self.logs.items())
        columns = zip(*rows, strict=True) if rows else ((), (), ())
        return LogUse(*(np.array(column, np.int64) for column in columns))

    def unlink_log(self, log_id: int) -> Work:
        self.asked.append(f"unlink {log_id}")
        return self._outcome(log_id)

    def compact(self, log_id: int) -> Work:
        self.asked.append(f"compact {log_id}")
        if self.hold:
            self.held.set()
            assert self.let_go.wait(END_S)
        return self._outcome(log_id)

    def progress(self) -> tuple[int, int, int]:
        return 7, 1, 2

    def stop(self) -> None:
        self.outcomes = dict.fromkeys(self.logs, Outcome.STOPPED)
        self.let_go.set()

    def _outcome(self, log_id: int) -> Work:
        found = self.outcomes.get(log_id, Outcome.DONE)
        if isinstance(found, OSError):
            raise found
        return Work(found, self.logs.pop(log_id)[0] if found is Outcome.DONE else 0)


class Store:
    """A metadata store with one ledger, or none."""

    def __init__(self) -> None:
        self.ledgers = [1]
        self.error: Exception | None = None

    def instance_id(self) -> str | None:
        if self.error:
            raise self.error
        return "cluster"

    def seen(self) -> str | None:
        return self.instance_id()

    def ranges(self) -> Iterator[list[int]]:
        yield self.ledgers

    def standing(self, ledger: int) -> Standing:
        return Standing.OURS if ledger in self.ledgers else Standing.ABSENT

    @contextmanager
    def replication_lock(self, ledger: int) -> Iterator[bool]:
        yield ledger > 0


LOGS = {1: (100, 0), 2: (100, 70), 3: (100, 10), 4: (100, 90), 5: (100, 30)}
Made = Callable[..., tuple[Garbage, list[Scripted]]]


@pytest.fixture
def made() -> Iterator[Made]:
    """Starts a collection over scripted directories; a cycle runs only if it is forced."""
    running: list[Garbage] = []

    def make(
        count: int = 1, store: Store | None = None, outcomes: Outcomes | None = None, **settings: object
    ) -> tuple[Garbage, list[Scripted]]:
        directories = [Scripted(dict(LOGS), dict(outcomes or {})) for _ in range(count)]
        given = GarbageSettings(**{"wait_ms": NEVER_MS, **settings})  # type: ignore[arg-type]
        garbage = Garbage(
            given,
            directories,
            store or Store(),
            own_instance=lambda: "cluster",
            checkpoint=lambda: True,
            log_bytes_max=1000,
        )
        running.append(garbage)
        garbage.start()
        return garbage, directories

    yield make
    for garbage in running:
        garbage.stop()


def cycle(garbage: Garbage, **order: bool) -> None:
    """Force a cycle and wait until it ends."""
    assert garbage.wait(garbage.force(**order), END_S)


def test_a_forced_major_compaction(made: Made) -> None:
    """Dead logs come first, then all below 80 %, emptiest first; the fullest stays."""
    garbage, (directory,) = made()
    cycle(garbage)
    assert directory.asked == ["unlink 1", "compact 3", "compact 5", "compact 2"]
    status = garbage.status()
    assert (status.last_major_ms > 0, status.last_minor_ms > 0, status.running) == (True, True, False)
    assert status.counters["gc_major_compaction_total"] == 1
    assert status.counters["gc_reclaimed_compaction_space_bytes"] == 300
    assert status.counters["gc_reclaimed_deletion_space_bytes"] == 100
    assert status.counters["gc_entry_log_usage_buckets_le_10"] == 1


def test_a_forced_minor_compaction(made: Made) -> None:
    """Only logs below 20 % are compacted, in all directories."""
    garbage, directories = made(2)
    cycle(garbage, major=False)
    assert [one.asked for one in directories] == [["unlink 1", "compact 3"]] * 2


def test_each_directory_is_counted(made: Made) -> None:
    """The work and the compactions of each directory are counted, and together they are the bookie's counters."""
    garbage, directories = made(2)
    del directories[1].logs[3]
    cycle(garbage, major=False)
    found, total = garbage.stats_of_directories(), garbage.stats()
    for name, each in {
        "gc_minor_compaction_total": [1, 1],
        "gc_compacted_log_total": [1, 0],
        "gc_reclaimed_compaction_space_bytes": [100, 0],
        "gc_active_entry_log_total": [5, 4],
    }.items():
        assert [one[name] for one in found] == each, name
        assert total[name] == (1 if name == "gc_minor_compaction_total" else sum(each)), name
    assert total["gc_entry_log_compact_ratio"] == (200 + 190) / 900


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"major_threshold": 0}, ["unlink 1", "compact 3"]),
        ({"major_interval_s": 0}, ["unlink 1", "compact 3"]),
        ({"major_interval_s": 0, "force_allows_disabled": True}, ["unlink 1", "compact 3", "compact 5", "compact 2"]),
        ({"major_interval_s": 0, "minor_interval_s": -1}, ["unlink 1"]),
        ({"usage_of_full_log": True}, ["unlink 1", "compact 3", "compact 5", "compact 2", "compact 4"]),
    ],
)  # fmt: skip
def test_what_a_forced_cycle_may_do(made: Made, settings: dict[str, object], expected: list[str]) -> None:
    """A kind that is disabled is not forced either, unless that is allowed."""
    garbage, (directory,) = made(**settings)
    cycle(garbage)
    assert sorted(directory.asked) == sorted(expected)


def test_suspended_compactions(made: Made) -> None:
    """Neither kind runs while it is suspended, forced or not; dead logs are unlinked nevertheless."""
    garbage, (directory,) = made()
    garbage.suspend(major=True)
    cycle(garbage)
    assert directory.asked == ["unlink 1", "compact 3"]
    garbage.suspend(minor=True)
    assert garbage.status().major_suspended
    assert garbage.status().minor_suspended
    cycle(garbage)
    assert len(directory.asked) == 2
    garbage.resume(major=True, minor=True)
    cycle(garbage)
    assert directory.asked[2:] == ["compact 5", "compact 2"]


@pytest.mark.parametrize(
    ("level", "allowed", "expected"),
    [
        (DiskLevel.WARN, False, ["unlink 1", "compact 3"]),
        (DiskLevel.FULL, False, ["unlink 1"]),
        (DiskLevel.FULL, True, ["unlink 1", "compact 3", "compact 5", "compact 2"]),
        (DiskLevel.BAD, True, []),
    ],
)
def test_disks_have_a_say(made: Made, level: DiskLevel, allowed: bool, expected: list[str]) -> None:
    """With a warning there is no major compaction; on a full disk none, unless isForceGCAllowWhenNoSpace; on an
    unusable one nothing.
    """
    garbage, (directory,) = made(collect_when_full=allowed)
    garbage.disk([level])
    cycle(garbage)
    assert directory.asked == expected


def test_a_full_disk_rests_alone(made: Made) -> None:
    """Other directories are compacted, and a disk that becomes full triggers a cycle."""
    garbage, (one, other) = made(2)
    garbage.disk([DiskLevel.OK, DiskLevel.FULL])
    assert garbage.wait(1, END_S)
    assert [one.asked, other.asked] == [["unlink 1"], ["unlink 1"]]
    cycle(garbage)
    assert one.asked[1:] == ["compact 3", "compact 5", "compact 2"]
    assert other.asked[1:] == []


def test_a_log_that_cannot_be_collected_is_passed_over(made: Made) -> None:
    """ST2: a log that is unreadable or contradicts the index is kept, logged and counted; others are collected."""
    garbage, (directory,) = made()
    directory.outcomes = {1: Outcome.KEPT, 3: OSError(5, "unreadable"), 5: Outcome.KEPT}
    cycle(garbage)
    assert directory.asked == ["unlink 1", "compact 3", "compact 5", "compact 2"]
    assert sorted(directory.logs) == [1, 3, 4, 5]
    stats = garbage.stats()
    assert (stats["gc_kept_logs"], stats["gc_reclaim_failed_to_delete"]) == (3, 1)


def test_no_space_ends_the_compaction_of_a_directory(made: Made) -> None:
    """The compaction continues with the next directory."""
    garbage, (one, other) = made(2)
    one.outcomes = {3: Outcome.NO_SPACE}
    cycle(garbage)
    assert one.asked == ["unlink 1", "compact 3"]
    assert len(other.asked) == 4


def test_a_stop_in_the_middle_of_a_compaction(made: Made) -> None:
    """The stop is passed on to the directory, and no further log is begun."""
    garbage, (directory,) = made()
    directory.hold = True
    garbage.force()
    assert directory.held.wait(END_S)
    status = garbage.status()
    assert (status.running, status.forced, status.compacting) == (True, True, "major")
    assert (status.progress.log_id, status.progress.logs_in_all) == (7, 3)
    garbage.stop()
    garbage.stop()
    assert directory.asked == ["unlink 1", "compact 3"]
    assert not any(thread.is_alive() for thread in garbage.threads())


def test_a_suspension_in_the_middle_of_a_compaction(made: Made) -> None:
    """The compaction ends after the current log, and what was forced meanwhile runs next."""
    garbage, (directory,) = made()
    directory.hold = True
    first = garbage.force()
    assert directory.held.wait(END_S)
    garbage.suspend(major=True)
    second = garbage.force(minor=False)
    assert second == first + 1
    directory.let_go.set()
    assert garbage.wait(second, END_S)
    assert directory.asked == ["unlink 1", "compact 3"]


def test_the_schedule(made: Made) -> None:
    """Cycles begin by themselves, and a compaction runs when its interval is over."""
    garbage, (directory,) = made(wait_ms=10, minor_interval_s=0.01, major_interval_s=3600)
    assert garbage.wait(3, END_S)
    assert directory.asked == ["unlink 1", "compact 3"]
    assert garbage.status().last_major_ms == 0


def test_a_time_limit(made: Made) -> None:
    """A compaction whose time is over before it begins compacts nothing."""
    garbage, (directory,) = made(major_ms_max=500)
    directory.hold = True
    number = garbage.force()
    assert directory.held.wait(END_S)
    threading.Event().wait(0.6)
    directory.let_go.set()
    assert garbage.wait(number, END_S)
    assert directory.asked == ["unlink 1", "compact 3"]


def test_ledgers_go_while_a_compaction_runs(made: Made) -> None:
    """As often as cycles begin, between two logs, the index loses deleted ledgers, logs are measured, and logs that
    died meanwhile are unlinked instead of copied. Logs that fell below the threshold wait for the next compaction.
    """
    store = Store()
    garbage, (directory,) = made(store=store, wait_ms=1000)
    directory.hold = True
    number = garbage.force()
    assert directory.held.wait(END_S)
    store.ledgers = [2]
    directory.logs |= {2: (100, 0), 4: (100, 20), 5: (100, 75)}
    threading.Event().wait(1.1)
    directory.let_go.set()
    assert garbage.wait(number, END_S)
    assert directory.asked == ["unlink 1", "compact 3", "delete [1]", "unlink 2", "compact 5"]
    assert garbage.stats()["gc_major_compaction_total"] == 1
    assert garbage.status().progress.logs_in_all == 2


def test_a_slow_store_does_not_hold_up_a_compaction(made: Made) -> None:
    """The collections between its logs get a small part of the time, however often cycles begin."""
    never = threading.Event()

    class Slow(Store):
        listings = 0

        def ranges(self) -> Iterator[list[int]]:
            self.listings += 1
            never.wait(1)
            yield self.ledgers

    store = Slow()
    garbage, (directory,) = made(store=store, wait_ms=10, minor_interval_s=0)
    compact = directory.compact

    def slowly(log_id: int) -> Work:
        never.wait(0.02)
        seen.append(store.listings)
        return compact(log_id)

    seen: list[int] = []
    directory.compact = slowly  # type: ignore[method-assign]
    cycle(garbage)
    assert directory.asked == ["unlink 1", "compact 3", "compact 5", "compact 2"]
    assert [listings - seen[0] for listings in seen] == [0, 1, 1]


def test_a_compaction_of_several_directories_goes_on(made: Made) -> None:
    """A collection in between does not end a directory's turn, and each log is compacted once."""
    garbage, directories = made(2, wait_ms=1)
    cycle(garbage)
    assert [one.asked for one in directories] == [["unlink 1", "compact 3", "compact 5", "compact 2"]] * 2


def test_directories_are_compacted_at_the_same_time(made: Made) -> None:
    """Each directory is compacting a log before the first has ended; the status sums them up."""
    garbage, directories = made(3)
    for one in directories:
        one.hold = True
    number = garbage.force()
    for one in directories:
        assert one.held.wait(END_S)
    progress = garbage.status().progress
    assert (progress.logs_in_all, progress.log_id, progress.bytes_done, progress.bytes_in_log) == (9, 7, 3, 6)
    for one in directories:
        one.let_go.set()
    assert garbage.wait(number, END_S)
    assert garbage.status().progress.logs_done == 9


def test_all_directories_pause_for_a_collection(made: Made) -> None:
    """No ledger is deleted while a directory compacts, and no directory begins a log while one waits for that."""
    store = Store()
    store.ledgers = [1, 2]
    garbage, (one, other) = made(2, store=store, wait_ms=200)
    other.ledgers = [2]
    one.hold = other.hold = True
    number = garbage.force()
    assert one.held.wait(END_S)
    assert other.held.wait(END_S)
    store.ledgers = [3]
    threading.Event().wait(0.3)
    other.let_go.set()
    one.let_go.set()
    assert garbage.wait(number, END_S)
    assert one.asked == ["unlink 1", "compact 3", "delete [1]", "compact 5", "compact 2"]
    assert other.asked == ["unlink 1", "compact 3", "delete [2]", "compact 5", "compact 2"]


def test_an_unexpected_error_of_any_directory_ends_the_thread(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread, which is watched, ends with the error when the other directories have ended their work."""
    errors: list[object] = []
    monkeypatch.setattr(threading, "excepthook", lambda args: errors.append(args.exc_value))
    garbage, directories = made(3)
    broken = RuntimeError("broken")

    def fail(log_id: int) -> Work:
        raise broken

    directories[1].compact = fail  # type: ignore[method-assign]
    cycle(garbage)
    garbage.threads()[0].join(END_S)
    assert errors == [broken]
    assert [len(one.asked) for one in directories] == [4, 1, 4]


def test_metadata_out_of_reach_stops_no_compaction(made: Made) -> None:
    """Compaction only needs the index; no ledger is deleted, which is counted."""
    store = Store()
    store.error = ConnectionError("gone")
    garbage, (directory,) = made(store=store)
    cycle(garbage)
    assert directory.asked == ["unlink 1", "compact 3", "compact 5", "compact 2"]
    assert garbage.stats()["gc_failed_cycles_total"] == 1


def test_a_deleted_ledger_goes_first(made: Made) -> None:
    """Ledgers are deleted before logs are measured, so that their logs are collected in the same cycle."""
    store = Store()
    store.ledgers = [2]
    garbage, (directory,) = made(store=store)
    cycle(garbage)
    assert directory.asked[:2] == ["delete [1]", "unlink 1"]
    assert garbage.stats()["gc_deleted_ledger_total"] == 1


def test_a_kept_log_is_looked_at_again_when_forced(made: Made) -> None:
    """A kept log is not tried in each cycle, because it would be scanned over and over."""
    kept: Outcomes = {1: Outcome.KEPT}
    garbage, (directory,) = made(outcomes=kept, wait_ms=10, minor_interval_s=0, major_interval_s=0)
    assert garbage.wait(4, END_S)
    assert directory.asked == ["unlink 1"]
    directory.outcomes = {}
    cycle(garbage)
    assert directory.asked[:2] == ["unlink 1", "unlink 1"]
    assert garbage.stats()["gc_kept_logs"] == 0
