"""Test a ledger directory that cannot be flushed. It keeps journal files that also hold entries of other directories;
the space that they take is bounded, and nothing is lost (store.carry_over, journal.files).
"""

import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import ModuleType

import pytest

from bookie._fast.base import crash_steps
from bookie.storage.marks import Mark, read_mark
from tests.reference.storage import entry
from tests.storage.opened import JOURNAL, MIB, Opened

FILE = JOURNAL["file_bytes_max"]
CACHE = 6 * MIB
"""The size of both halves of a directory's write cache."""
HURRY = max(4 * CACHE, 4 * FILE)
KEPT_FILES = 2 + 1
"""Files that are kept besides the backlog: backups, and the file that is prepared ahead. Used files that are kept for
reuse do not count, because no new file is made while there is one.
"""
BOUND = HURRY + 2 * CACHE + (KEPT_FILES + 2) * FILE
"""The upper bound of a journal's size: the backlog that starts a carry-over, its copies, and a round of the test."""
STUCK = 40
KEY = b"k" * 20
LAC = (7).to_bytes(8, "big") + (11).to_bytes(8, "big")
ROUNDS = 40
ROUND = [bytes([at]) * 50_000 for at in range(40)]


def full(faulty: ModuleType, directory: str = "ledgers-1") -> None:
    """Let a ledger directory have no space for new files."""
    for name in ("lastId.tmp", "lastMark.tmp"):
        faulty.plan("open", "ENOSPC", times=-1, suffix=f"{directory}/current/{name}")


def opened(root: Path, files: object, **settings: object) -> Opened:
    """Open two ledger directories on one journal, whose bookie does not become read-only when one of them is full."""
    one = Opened(root, ledger_dirs=2, files=files, backups_max=2, write_cache_bytes=2 * CACHE, **settings)  # type: ignore[arg-type]
    one.storage.allow(high_priority=False, any_full=False)
    return one


@contextmanager
def running(one: Opened) -> Iterator[None]:
    """Run the threads of the journals and of the flush."""
    committers = one.storage._journals
    bodies = [body for committer in committers for body in (committer.run, committer.run_prepare)]
    threads = [threading.Thread(target=body) for body in (*bodies, one.checkpoints.run)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        one.checkpoints.stop()
        for committer in committers:
            committer.stop()
        for thread in threads:
            thread.join()


def write_stuck(one: Opened) -> None:
    """Write entries, one of them again in the other half, a master key, a fence and an explicit LAC to the directory
    that is full. The flush thread must be running.
    """
    for at in range(STUCK):
        assert one.direct.wait(1, one.direct.add(entry(1, at, payload=bytes([at]) * 50_000), KEY), 60)
    assert not one.checkpoints.checkpoint()
    for at in range(STUCK, STUCK + 10):
        one.direct.add(entry(1, at, payload=bytes([at]) * 10_000), KEY)
    one.direct.add(entry(1, 3, payload=b"newer"), KEY, recovery=True)
    one.direct.add(entry(5, 7))
    one.direct.fence(5)
    one.direct.write_lac(LAC)
    assert one.direct.commit()


def write_round(one: Opened, number: int) -> None:
    """Write two megabytes to the other directory."""
    for at, payload in enumerate(ROUND):
        group = one.direct.add(entry(0, len(ROUND) * number + at, payload=payload))
        assert group
        assert one.direct.wait(0, group, 60)


def journal_bytes(root: Path) -> int:
    """Return the disk space that the journal takes."""
    size = 0
    for path in (root / "journal-0/current").iterdir():
        with suppress(FileNotFoundError):  # it has just been given another name
            size += path.stat().st_blocks * 512
    return size


def write_until(one: Opened, done: Callable[[], bool], resting: threading.Event | None = None) -> None:
    """Write rounds with a checkpoint after each until `done()`. `resting` is set while nothing is written."""
    resting = resting or threading.Event()
    number = 0
    while not done():
        assert number < ROUNDS
        write_round(one, number)
        number += 1
        resting.set()
        if not done():
            one.checkpoints.checkpoint()
            resting.clear()
    resting.set()


def held(one: Opened, ledger: int) -> dict[int, bytes]:
    """Return the entries of a ledger, from 0 on, that can be read."""
    found: dict[int, bytes] = {}
    for at in range(len(ROUND) * ROUNDS):
        read = one.direct.read(ledger, at)
        if read.status == "OK":
            [found[at]] = read.entries()
        assert read.status in ("OK", "NO_ENTRY", "UNKNOWN_STATE")
        read.release()
    return found


def check_stuck(one: Opened) -> None:
    """Check that everything that `write_stuck` wrote can be read."""
    stuck = {at: entry(1, at, payload=bytes([at]) * (50_000 if at < STUCK else 10_000)) for at in range(STUCK + 10)}
    assert held(one, 1) == stuck | {3: entry(1, 3, payload=b"newer")}
    assert held(one, 5) == {7: entry(5, 7)}
    states = [one.direct.ledger(ledger) for ledger in (1, 5, 7)]
    assert [state is not None and state.fenced for state in states] == [False, True, False]
    assert states[0] is not None
    assert states[0].key == KEY
    assert states[2] is not None
    assert states[2].explicit_lac == LAC


def was_carried_over(one: Opened) -> bool:
    """Return whether this process has carried over the memory contents of the full directory."""
    return one.storage.stats()["carry_overs"] > 0


def mark(root: Path, directory: int = 1) -> Mark | None:
    """Return the last mark of a ledger directory."""
    return read_mark(root / f"ledgers-{directory}/current/lastMark")


@pytest.mark.thorough
def test_b15_a_full_directory_does_not_fill_the_journals_disk(tmp_path: Path, faulty: ModuleType) -> None:
    """The memory contents of the full directory are journaled again, its last mark is written in place, and older
    journal files are deleted. This also survives a crash on the full disk, and another one when the disk has space
    again.
    """
    one = opened(tmp_path, faulty.FaultyFiles())
    full(faulty)
    with running(one):
        write_stuck(one)
        sizes = []
        for number in range(ROUNDS):
            write_round(one, number)
            one.checkpoints.checkpoint()
            sizes.append(journal_bytes(tmp_path))
        assert max(sizes) <= BOUND, sizes
    assert one.storage.full_directories() == {tmp_path / "ledgers-1"}
    check_stuck(one)
    one.crash()
    for _ in range(2):
        one = opened(tmp_path, faulty.FaultyFiles())
        check_stuck(one)
        one.crash()
        faulty.clear()
    one = opened(tmp_path, faulty.FaultyFiles())
    one.checkpoint()
    assert mark(tmp_path, 0) == mark(tmp_path, 1)
    check_stuck(one)
    assert len(held(one, 0)) == ROUNDS * len(ROUND)
    one.stop()


@pytest.mark.thorough
def test_b15_what_the_index_lacks_is_journaled_again(tmp_path: Path, faulty: ModuleType) -> None:
    """Entries that were flushed and wait for the index, when the disk gets full, are copied from the entry log; newer
    copies in memory follow them, and those of deleted ledgers are left out.
    """
    one = opened(tmp_path, faulty.FaultyFiles(), index_slice_ledgers=1)
    waiting = {ledger: entry(ledger, 0, payload=b"%d" % ledger) for ledger in range(101, 301, 2)}
    for data in waiting.values():
        one.direct.add(data, KEY)
    assert one.direct.commit()
    one.flush_for_room()
    assert one.storage.stats()["index_pending_runs"] > 50
    gone, again = 103, 105
    assert one.storage.collectors()[1].delete_ledgers([gone]) == 1
    del waiting[gone]
    full(faulty)
    with running(one):
        write_stuck(one)
        waiting[again] = entry(again, 0, payload=b"again")
        assert one.direct.wait(1, one.direct.add(waiting[again], KEY, recovery=True), 60)
        sizes = []
        for number in range(ROUNDS):
            write_round(one, number)
            one.checkpoints.checkpoint()
            sizes.append(journal_bytes(tmp_path))
        assert max(sizes) <= BOUND, sizes
    assert was_carried_over(one)
    assert one.storage.stats()["index_pending_runs"] > 50
    one.crash()
    faulty.clear()
    one = opened(tmp_path, faulty.FaultyFiles())
    check_stuck(one)
    assert {ledger: held(one, ledger) for ledger in waiting} == {ledger: {0: data} for ledger, data in waiting.items()}
    assert one.direct.ledger(gone) is None
    one.stop()


AHEAD = shutil.ignore_patterns("*.preparing", "*.spare")
"""Files that the journal may rename at any time."""
STEPS = CARRYING, CARRIED, CARRY_MARKED = 71, 72, 73


@pytest.mark.thorough
@pytest.mark.parametrize("step", STEPS)
def test_b15_a_kill_while_it_is_journaled_again(tmp_path: Path, faulty: ModuleType, step: int) -> None:
    """The files at each step are what a kill would leave: everything is replayed from them, even on a disk that is
    still full, and carried over again afterwards.
    """
    one = opened(tmp_path / "live", faulty.FaultyFiles())
    full(faulty)
    enough, resting = threading.Event(), threading.Event()
    crash_steps.hold_at_step(step)
    with running(one):
        try:
            write_stuck(one)
            before = mark(tmp_path / "live")
            writer = threading.Thread(target=write_until, args=(one, enough.is_set, resting))
            writer.start()
            assert crash_steps.wait_held(60)
            enough.set()
            assert resting.wait(60)
            shutil.copytree(tmp_path / "live", tmp_path / "killed", ignore=AHEAD)
            assert (mark(tmp_path / "killed") == before) == (step != CARRY_MARKED)
        finally:
            enough.set()
            crash_steps.hold_at_step(0)
        writer.join()
    one.crash()
    for _ in range(2):
        one = opened(tmp_path / "killed", faulty.FaultyFiles())
        check_stuck(one)
        with running(one):
            write_until(one, partial(was_carried_over, one))
        one.crash()
    faulty.clear()
    one = opened(tmp_path / "killed", faulty.FaultyFiles())
    check_stuck(one)
    one.stop()


@pytest.mark.thorough
def test_b15_a_kill_brings_back_no_older_copy(tmp_path: Path, faulty: ModuleType) -> None:
    """Of an entry that waits for the index and was written again, no older copy is journaled behind the newer one."""
    one = opened(tmp_path / "live", faulty.FaultyFiles(), index_slice_ledgers=1)
    ledgers, first = range(101, 191, 2), 233  # the latter is journaled again first
    for ledger in ledgers:
        one.direct.add(entry(ledger, 0, payload=b"older" + bytes(20_000)), KEY)
        one.direct.add(entry(ledger, 1, payload=bytes(35_000)), KEY)
        assert one.direct.commit()
    one.flush_for_room()
    assert one.storage.stats()["index_pending_runs"] > len(ledgers) // 2
    for ledger in ledgers:
        one.direct.add(entry(ledger, 0, payload=b"newer"), KEY, recovery=True)
    for at in range(10):
        one.direct.add(entry(first, at, payload=bytes(50_000)), KEY)  # more than the log takes
    assert one.direct.commit()
    full(faulty)
    crash_steps.hold_at_step(CARRYING)
    with running(one):
        try:
            assert not one.checkpoints.checkpoint()
            writer = threading.Thread(target=write_until, args=(one, partial(was_carried_over, one)))
            writer.start()
            assert crash_steps.wait_held(60)
            shutil.copytree(tmp_path / "live", tmp_path / "killed", ignore=AHEAD)
        finally:
            crash_steps.hold_at_step(0)
        writer.join()
    one.crash()
    faulty.clear()
    for root in ("killed", "live"):
        one = opened(tmp_path / root, faulty.FaultyFiles())
        for ledger in ledgers:
            wanted = {0: entry(ledger, 0, payload=b"newer"), 1: entry(ledger, 1, payload=bytes(35_000))}
            assert held(one, ledger) == wanted
        one.stop()


def test_b15_a_directory_that_cannot_be_helped(tmp_path: Path, faulty: ModuleType) -> None:
    """A copy-on-write file system cannot write the last mark on a full disk: the journal then stops taking adds at its
    limit, nothing is carried over in vain, and the journal continues once the directory has space.
    """
    one = opened(tmp_path, faulty.FaultyFiles(), backlog_bytes_max=32 * MIB)
    full(faulty)
    faulty.plan("pwritev", "ENOSPC", times=-1, suffix="ledgers-1/current/lastMark")
    both = {tmp_path / "ledgers-1", tmp_path / "journal-0"}
    with running(one):
        write_stuck(one)
        write_until(one, lambda: one.storage.full_directories() == both)
        assert one.storage.stats()["carried_bytes"] == 0
        assert journal_bytes(tmp_path) <= 32 * MIB + (KEPT_FILES + 2) * FILE
        one.storage.tell_damage()
        faulty.clear()
        assert one.checkpoints.checkpoint()
        assert not one.storage.full_directories()
    check_stuck(one)
    one.stop()


@pytest.mark.thorough
def test_b15_a_directory_that_is_slow_before_it_is_full(tmp_path: Path, faulty: ModuleType) -> None:
    """While a flush hangs, nothing can be carried over: the journals stop at their limit all the same, and continue
    when the disk reports that it is full.
    """
    one = opened(tmp_path, faulty.FaultyFiles(), backlog_bytes_max=16 * MIB, file_bytes_max=MIB)
    stalled = faulty.plan("open", "STALL", suffix="ledgers-1/current/lastId.tmp")
    with running(one):
        one.direct.add(entry(1, 0))
        flush = threading.Thread(target=one.checkpoints.checkpoint)
        flush.start()
        assert faulty.wait_hit(stalled, 60)
        number = 0
        while tmp_path / "journal-0" not in one.storage.full_directories():
            assert one.direct.wait(number % 2, one.direct.add(entry(number % 2, number)), 60)
            number += 1
        assert journal_bytes(tmp_path) <= (16 + KEPT_FILES + 2) * MIB
        full(faulty)
        faulty.release()
        flush.join()
        one.checkpoints.checkpoint()
        assert one.storage.full_directories() == {tmp_path / "ledgers-1"}
        assert was_carried_over(one)
    assert len(held(one, 1)) >= min(number // 2, len(ROUND) * ROUNDS // 2)
    one.crash()
    faulty.clear()
    one = opened(tmp_path, faulty.FaultyFiles())
    found = one.direct.read(0, 0, count=number, size=64 * MIB)
    assert found.entries()[0] == entry(0, 0)
    found.release()
    one.stop()


def test_b15_the_journals_disk_is_full_as_well(tmp_path: Path, faulty: ModuleType) -> None:
    """If the journal's disk is full as well, the carry-over fails without moving the mark, and succeeds later."""
    one = opened(tmp_path, faulty.FaultyFiles())
    full(faulty)
    enough = threading.Event()
    crash_steps.hold_at_step(CARRYING)
    with running(one):
        try:
            write_stuck(one)
            before = mark(tmp_path)
            writer = threading.Thread(target=write_until, args=(one, enough.is_set))
            writer.start()
            assert crash_steps.wait_held(60)
            rule = faulty.plan("pwritev", "ENOSPC", times=-1, suffix=".txn")
        finally:
            enough.set()
            crash_steps.hold_at_step(0)
        assert faulty.wait_hit(rule, 60)
        writer.join()
        assert mark(tmp_path) == before
        assert not was_carried_over(one)
        faulty.clear()
        full(faulty)
        write_until(one, partial(was_carried_over, one))
    one.crash()
    faulty.clear()
    one = opened(tmp_path, faulty.FaultyFiles())
    check_stuck(one)
    one.stop()
