"""Test garbage collection of a directory (store.gc.collector, store.gc.compaction, store.gc.liveness,
store.gc.ledger_removal): live entries are moved, deleted ones never return, and files that contain something wrong are
kept and reported (B6, B12, B13, B14).
"""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from bookie._fast.base.file import Files
from bookie._fast.entrylog.scan import scan_entry_log
from bookie._fast.entrylog.writer import EntryLog
from bookie._fast.store.direct import Refused
from tests.fixtures.draws import examples
from tests.reference import entry_log as log_model
from tests.storage.collecting import KEY, Collecting

Begin = Callable[..., Collecting]


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Begin]:
    """Return a function that opens storage, which is closed after the test."""
    made: list[Collecting] = []

    def make(**options: object) -> Collecting:
        made.append(Collecting(tmp_path, **options))
        return made[-1]

    yield make
    for one in made:
        one.one.crash()


def mixed(one: Collecting) -> None:
    """Write three ledgers side by side into several logs, delete the second one, and close all logs."""
    for at in range(0, 60, 10):
        for ledger in (1, 2, 3):
            one.add(ledger, range(at, at + 10))
        one.one.checkpoint()
    one.delete(2)
    one.restart()


def test_compaction_moves_what_lives(begin: Begin) -> None:
    """Compaction copies the live entries, removes the logs, and does not change what is served."""
    one = begin()
    mixed(one)
    before = {log_id: (one.directory / f"{log_id:x}.log").stat().st_size for log_id in one.closed()}
    assert one.collector.live_bytes().live.sum() == one.live_in_index()
    done = [one.collector.compact(log_id) for log_id in before]
    assert {result.outcome for result in done} == {"unlinked"}
    assert sum(result.moved_bytes for result in done) == one.live_in_index()
    assert sum(result.moved_records for result in done) == 120
    assert sum(result.dropped_records for result in done) == 60
    assert [result.file_bytes for result in done] == list(before.values())
    assert not any((one.directory / f"{log_id:x}.log").exists() for log_id in before)
    assert one.collector.live_bytes().live.sum() == one.live_in_index()
    assert one.one.storage.store_stats()[0][1]["index_entries"] == 120
    assert one.collector.progress()["logs_unlinked"] == len(before)
    assert one.collector.progress()["log_id"] == -1
    one.check()
    one.restart()
    one.check()


def test_open_logs_are_left_alone(begin: Begin) -> None:
    """The log of the flush and that of compaction are left alone, and a log that does not exist is reported as gone."""
    one = begin()
    mixed(one)
    one.add(1, range(60, 62))
    one.one.checkpoint()
    open_log = max(int(path.stem, 16) for path in one.directory.glob("*.log"))
    assert open_log not in one.closed()
    assert one.collector.compact(open_log).outcome == "open"
    assert one.collector.unlink_log(open_log).outcome == "open"
    assert one.collector.unlink_log(7777).outcome == one.collector.compact(7777).outcome == "gone"
    assert one.collector.unlink_log(one.closed()[0]).outcome == "live"
    one.collector.compact(one.closed()[0])
    target = max(int(path.stem, 16) for path in one.directory.glob("*.log"))
    assert target != open_log
    assert one.collector.compact(target).outcome == "open"
    one.collector.finish()
    assert target in one.closed()
    one.check()


def test_dead_logs_go_without_a_copy(begin: Begin) -> None:
    """When all ledgers are deleted, every closed log is removed, by its map alone or after a scan."""
    one = begin()
    mixed(one)
    assert one.delete(1, 3, 99) == 2
    assert one.collector.live_bytes().ids.size == 0
    with (one.directory / f"{one.closed()[0]:x}.log").open("r+b") as unmapped:
        unmapped.write(log_model.header())
    done = one.cycle()
    assert {result.outcome for result in done} == {"unlinked"}
    assert not list(one.directory.glob("*.log"))
    one.check()


@pytest.mark.parametrize(
    ("harm", "outcome"),
    [
        ((8, bytes(12)), "unlinked"),  # no map, as after a crash: the log is scanned
        ((8, b"\xff" * 12), "unlinked"),  # a map offset outside of the file
        ((0, bytes(1024)), "disagrees"),  # not an entry log
    ],
)
def test_st1_a_header_is_not_believed(begin: Begin, harm: tuple[int, bytes], outcome: str) -> None:
    """ST1: whatever the header says of the map, the log is scanned; its live entries are moved, or the file is kept."""
    one = begin()
    mixed(one)
    log_id = one.closed()[0]
    path = one.directory / f"{log_id:x}.log"
    with path.open("r+b") as log:
        log.seek(harm[0])
        log.write(harm[1])
    assert one.collector.unlink_log(log_id).outcome == "live"
    assert one.collector.compact(log_id).outcome == outcome
    assert path.exists() == (outcome != "unlinked")
    one.check()


def test_every_ledger_is_told_once(begin: Begin) -> None:
    """Ledger ids are ascending and unique, and deleting a ledger of another directory is refused."""
    one = begin(ledger_dirs=2, write_cache_bytes=128 << 20)
    for ledger in range(0, 6000, 2):
        one.one.direct.add(log_model.entry(ledger, 0), KEY)
    assert one.collector.ledger_ids().tolist() == list(range(0, 6000, 2))
    with pytest.raises(ValueError, match="ledger 7 does not belong to"):
        one.collector.delete_ledgers(np.array([4, 7]))
    assert one.delete(*range(0, 5998, 2)) == 2999
    assert one.collector.ledger_ids().tolist() == [5998]


def test_many_runs_are_deleted_in_several_commits(begin: Begin) -> None:
    """A ledger with more runs than one transaction deletes is removed completely, and other ledgers keep their runs."""
    one = begin(log_bytes_max=1 << 20)
    one.add(1, range(5))
    for at in range(0, 30_000 * 20, 20):
        one.one.direct.add(log_model.entry(2, at), KEY)
        if at % (1000 * 20) == 0:
            one.one.checkpoint()
    one.one.checkpoint()
    assert one.collector.live_bytes().runs > 25_000
    assert one.collector.delete_ledgers([2]) == 1
    assert one.collector.live_bytes().runs == 1
    one.check()


def test_an_orphan_keeps_its_log(begin: Begin) -> None:
    """B12: a log with an entry that is missing in the index is kept if its ledger exists, and the entry is reported."""
    one = begin()
    mixed(one)
    EntryLog(one.directory, 0x77).append(1, [log_model.entry(9, 0)])
    strange = log_model.build([log_model.entry(2, 5), log_model.entry(1, 400), log_model.entry(1, 401)], closed=True)
    (one.directory / "77.log").write_bytes(strange)
    assert 0x77 in one.closed()
    for collect in (one.collector.unlink_log, one.collector.compact):
        result = collect(0x77)
        assert (result.outcome, result.ledger, result.entry) == ("orphans", 1, 400)
        assert (one.directory / "77.log").read_bytes() == strange
    one.delete(1)
    assert one.collector.unlink_log(0x77).outcome == "unlinked"
    one.check()


def test_a_copy_is_no_orphan(begin: Begin) -> None:
    """A copy that a crash left during compaction is removed, since each of its entries is found in another log."""
    one = begin()
    mixed(one)
    source = one.directory / f"{one.closed()[0]:x}.log"
    shutil.copy(source, one.directory / "88.log")
    result = one.collector.unlink_log(0x88)
    assert (result.outcome, result.moved_records) == ("unlinked", 0)
    assert result.dropped_records > 0
    one.check()


def records_of(path: Path) -> list[int]:
    """Return the offsets of the records."""
    return [int(offset) for chunk in scan_entry_log(path) for offset in chunk.offset]


def test_a_tear_before_what_the_index_needs(begin: Begin) -> None:
    """A log that ends inside an indexed record is kept, and everything that can be read is moved."""
    one = begin()
    mixed(one)
    log_id = one.closed()[0]
    path = one.directory / f"{log_id:x}.log"
    offsets = records_of(path)
    with path.open("r+b") as file:
        file.truncate(offsets[5] + 20)
    result = one.collector.compact(log_id)
    assert (result.outcome, result.torn_at, result.moved_records) == ("torn", offsets[5], 5)
    assert path.exists()
    assert one.collector.points_into(log_id, offsets[5])
    assert not one.collector.points_into(log_id, 1 << 31)
    assert one.collector.unlink_log(log_id).outcome == "live"


def test_a_tear_behind_what_the_index_needs(begin: Begin) -> None:
    """A record at the end that was torn by a power cut was never acknowledged, so the log is removed."""
    one = begin()
    mixed(one)
    log_id = one.closed()[0]
    path = one.directory / f"{log_id:x}.log"
    end = int.from_bytes(path.read_bytes()[8:16], "big")
    path.write_bytes(path.read_bytes()[:8] + bytes(12) + path.read_bytes()[20:end] + bytes([0, 0, 1, 0, 9, 9]))
    result = one.collector.compact(log_id)
    assert (result.outcome, result.torn_at) == ("unlinked", end)
    one.check()


def test_a_log_that_was_changed_under_the_index(begin: Begin) -> None:
    """A log with another record at an indexed position is kept and reported."""
    one = begin()
    mixed(one)
    log_id = one.closed()[0]
    path = one.directory / f"{log_id:x}.log"
    changed = bytearray(path.read_bytes())
    at = records_of(path)[0]
    changed[at : at + 4] = (int.from_bytes(changed[at : at + 4], "big") * 2 + 4).to_bytes(4, "big")
    path.write_bytes(changed)
    result = one.collector.compact(log_id)
    assert (result.outcome, result.offset) == ("disagrees", at)
    assert path.read_bytes() == changed
    foreign = one.directory / "99.log"
    foreign.write_bytes(b"a file of somebody else" * 100)
    assert one.collector.compact(0x99).outcome == one.collector.unlink_log(0x99).outcome == "unreadable"
    assert foreign.exists()


def test_stop_pause_and_resume(begin: Begin) -> None:
    """After stop() no work begins, and pause() keeps neither stop() nor other calls from returning."""
    one = begin()
    mixed(one)
    one.collector.set_rate(1 << 40)
    one.collector.pause()
    assert one.collector.progress()["paused"]
    one.collector.resume()
    assert one.collector.compact(one.closed()[0]).outcome == "unlinked"
    one.collector.stop()
    assert one.collector.compact(one.closed()[0]).outcome == "stopped"
    assert one.collector.unlink_log(one.closed()[0]).outcome == "stopped"
    with pytest.raises(ValueError, match="it must be at least 0"):
        one.collector.set_rate(-1)
    one.check()


@pytest.mark.parametrize("operation", ["fallocate", "pwritev", "fdatasync"])
def test_no_space_leaves_the_source(begin: Begin, faulty: ModuleType, operation: str) -> None:
    """B15: without space, the target ends after its indexed entries. Once there is space, the log is compacted."""
    files: Files = faulty.FaultyFiles()
    one = begin(files=files)
    mixed(one)
    log_id = one.closed()[0]
    faulty.plan(operation, "ENOSPC", suffix=".log", times=-1)
    assert one.collector.compact(log_id).outcome == "no space"
    faulty.clear()
    assert (one.directory / f"{log_id:x}.log").exists()
    one.check()
    assert one.collector.compact(log_id).outcome == "unlinked"
    assert {result.outcome for result in one.cycle()} == {"unlinked"}
    one.check()


def test_an_unreadable_log_is_kept(begin: Begin, faulty: ModuleType) -> None:
    """After EIO from a read the log is kept and nothing is concluded about it."""
    one = begin(files=faulty.FaultyFiles())
    mixed(one)
    log_id = one.closed()[0]
    faulty.plan("pread", "EIO", suffix=f"/{log_id:x}.log")
    assert one.collector.compact(log_id).outcome == "unreadable"
    faulty.clear()
    assert one.collector.compact(log_id).outcome == "unlinked"
    one.check()


class Collection(RuleBasedStateMachine):
    """After adds, deletions, checkpoints, compactions and crashes in any order, the model's entries are served."""

    root: Path

    @initialize(keep_flushed=st.booleans())
    def start(self, *, keep_flushed: bool) -> None:
        shutil.rmtree(self.root, ignore_errors=True)
        self.one = Collecting(self.root, keep_flushed=keep_flushed)

    @rule(
        ledger=st.integers(0, 4),
        first=st.integers(0, 30),
        count=st.integers(1, 12),
        mark=st.binary(max_size=2),
        size=st.sampled_from([1, 100, 1500]),
    )
    def add(self, ledger: int, first: int, count: int, mark: bytes, size: int) -> None:
        """Add new entries and old ones again; a deleted ledger is created anew."""
        self.one.add(ledger, range(first, first + count), mark, size)

    @rule()
    def checkpoint(self) -> None:
        self.one.one.checkpoint()

    @rule(ledgers=st.sets(st.integers(0, 5), max_size=3))
    def delete(self, ledgers: set[int]) -> None:
        """Delete ledgers (B14)."""
        known = len(ledgers & set(self.one.model.ledgers))
        assert self.one.delete(*ledgers) == known

    @rule(ledger=st.integers(0, 4))
    def fence(self, ledger: int) -> None:
        if self.one.model.fence(ledger, KEY) == "NO_LEDGER":
            with pytest.raises(Refused, match="NO_LEDGER"):
                self.one.one.direct.fence(ledger, KEY)
            return
        self.one.one.direct.fence(ledger, KEY)
        # a fence that is not synced may come back after a deletion, and is then deleted once more
        assert self.one.one.direct.commit()

    @rule(data=st.data())
    def compact(self, data: st.DataObject) -> None:
        """Compact a closed log, however many of its entries are live."""
        closed = self.one.closed()
        if closed:
            result = self.one.collector.compact(data.draw(st.sampled_from(closed)))
            assert result.outcome in {"unlinked", "orphans"}

    @rule()
    def cycle(self) -> None:
        """Collect all logs, after checking that the sums of live bytes are exact."""
        self.one.one.checkpoint()
        assert self.one.collector.live_bytes().live.sum() == self.one.live_in_index()
        assert {result.outcome for result in self.one.cycle()} <= {"unlinked", "orphans"}

    @rule(crash=st.booleans())
    def restart(self, *, crash: bool) -> None:
        """Restart the storage, with replay (B14)."""
        self.one.restart(crash=crash)

    @rule()
    def check(self) -> None:
        self.one.check()

    def teardown(self) -> None:
        if hasattr(self, "one"):
            self.one.check()
            self.one.stop()


def test_collection_against_a_model(tmp_path: Path) -> None:
    """B12, B13, B14 hold for any order of events."""
    Collection.root = tmp_path / "bookie"
    Collection.TestCase.settings = settings(
        max_examples=examples(20),
        stateful_step_count=25,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    Collection.TestCase().runTest()
