"""Starts after a crash on full disks: as much of the journal as fits into memory is served, no entry is denied, and
the rest is replayed when there is room (B7, B15; module store.pack_cache).
"""

import threading
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from bookie.storage.tools.check_journals import check_journals
from tests.crash.small_disk import SmallDisk, Unavailable
from tests.reference.storage import entry
from tests.storage.opened import MIB, Opened

COUNT = 300
STORED = [entry(1, at, payload=bytes([at % 251]) * 10_000) for at in range(COUNT)]
FULL_DISKS = {
    "write of the log": ("pwritev", ".log"),
    "a new log": ("open", ".log"),
    "write of the last id": ("pwritev", "lastId.tmp"),
}


def written(root: Path) -> None:
    """Write three megabytes of ledger 1, entries and a fence of ledger 2 and an empty ledger 4, to the journal only."""
    one = Opened(root, write_cache_bytes=16 * MIB)
    for at, data in enumerate(STORED):
        if not one.direct.add(data) or at % 20 == 0:
            assert one.direct.commit()
        if at % 100 == 0:
            one.direct.add(entry(2, at))
    one.direct.fence(2)
    one.direct.fence(4)
    assert one.direct.commit()
    one.crash()


def statuses(one: Opened) -> dict[str, int]:
    """Return how reads of all of ledger 1 ended, and check the entries that are returned."""
    seen: dict[str, int] = {}
    for at in range(COUNT):
        held = one.direct.read(1, at)
        if held.status == "OK":
            assert held.entries() == [STORED[at]]
        seen[held.status] = seen.get(held.status, 0) + 1
        held.release()
    return seen


def status(one: Opened, ledger: int, at: int) -> str:
    """Return how one read ended."""
    held = one.direct.read(ledger, at)
    held.release()
    return held.status


@pytest.mark.parametrize("fault", FULL_DISKS.values(), ids=FULL_DISKS)
def test_b15_what_fits_into_memory_is_served(tmp_path: Path, faulty: ModuleType, fault: tuple[str, str]) -> None:
    """Everything is served, even after a second crash, and marks stay; with space it is flushed, and not replayed."""
    written(tmp_path)
    faulty.plan(fault[0], "ENOSPC", times=-1, suffix=fault[1])
    for _ in range(2):
        one = Opened(tmp_path, files=faulty.FaultyFiles(), write_cache_bytes=16 * MIB)
        assert one.report.entries == COUNT + 3
        assert one.storage.full_directories() == {tmp_path / "ledgers-0"}
        assert statuses(one) == {"OK": COUNT}
        assert status(one, 1, COUNT) == "NO_ENTRY"
        with pytest.raises(OSError, match="no space left"):
            one.checkpoint()
        one.crash()
    one = Opened(tmp_path, files=faulty.FaultyFiles(), write_cache_bytes=16 * MIB)
    faulty.clear()
    one.checkpoint()
    assert not one.storage.full_directories()
    one.crash()
    one = Opened(tmp_path)
    assert one.report.entries == 0
    assert statuses(one) == {"OK": COUNT}
    one.stop()


@pytest.mark.parametrize("crashes", [0, 2])
def test_b7_what_does_not_fit_is_not_denied(tmp_path: Path, faulty: ModuleType, crashes: int) -> None:
    """Ledgers that do not fit answer only for entries that are in memory, until there is room for all of them."""
    written(tmp_path)
    faulty.plan("pwritev", "ENOSPC", times=-1, suffix=".log")
    for _ in range(crashes):
        Opened(tmp_path, files=faulty.FaultyFiles(), write_cache_bytes=MIB).crash()
    one = Opened(tmp_path, files=faulty.FaultyFiles(), write_cache_bytes=MIB)
    seen = statuses(one)
    assert seen.keys() == {"OK", "UNKNOWN_STATE"}
    assert seen["OK"] >= 40
    assert [status(one, 1, at) for at in (COUNT, 1 << 40)] == ["UNKNOWN_STATE"] * 2
    assert [status(one, 2, at) for at in (200, 300)] == ["UNKNOWN_STATE"] * 2
    assert status(one, 4, 0) == "NO_ENTRY", "nothing of it was held"
    states = [one.direct.ledger(ledger) for ledger in (1, 2, 4)]
    assert [state is not None and state.fenced for state in states] == [False, True, True]
    faulty.clear()
    passes = 0
    with pytest.raises(OSError, match="no space left"):
        one.checkpoint()
    assert one.checkpoints.catch_up is not None
    while not one.checkpoints.catch_up():
        passes += 1
        assert passes < 20
    assert statuses(one) == {"OK": COUNT}
    assert [status(one, 2, at) for at in (0, 200, 300)] == ["OK", "OK", "NO_ENTRY"]
    one.checkpoint()
    one.crash()
    one = Opened(tmp_path)
    assert one.report.entries == 0
    assert statuses(one) == {"OK": COUNT}
    one.stop()


def test_b7_what_the_journal_holds_several_times_takes_room_once(tmp_path: Path, faulty: ModuleType) -> None:
    """Entries that are in the journal several times, as after a carry-over and a kill, take memory only once."""
    one = Opened(tmp_path, write_cache_bytes=64 * MIB)
    for _ in range(4):
        for at, data in enumerate(STORED):
            one.direct.add(data)
            assert at % 20 or one.direct.commit()
    assert one.direct.commit()
    one.crash()
    faulty.plan("pwritev", "ENOSPC", times=-1, suffix=".log")
    one = Opened(tmp_path, files=faulty.FaultyFiles(), write_cache_bytes=10 * MIB)
    assert statuses(one) == {"OK": COUNT}
    assert one.direct.ledger(1) is not None
    assert status(one, 1, COUNT) == "NO_ENTRY", "nothing of it was held"
    one.crash()


def test_b7_what_fits_goes_by_its_bytes(tmp_path: Path, faulty: ModuleType) -> None:
    """What fits depends on its bytes, not on the order of the journal or on the growth of pages: a replay has another
    order than the adds had.

    8 ledgers of 700 KB are in pages of a megabyte each, which are packed when no half has room. Each has an entry
    twice, of which the newer one counts, whichever half it is in.
    """
    ledgers, count, again = range(1, 9), 100, 3

    def stored(ledger: int, at: int) -> bytes:
        return entry(ledger, at, payload=bytes([ledger]) * (6000 if at == again else 7000))

    one = Opened(tmp_path, write_cache_bytes=64 * MIB)
    for at in range(count):
        for ledger in ledgers:
            assert one.direct.add(entry(ledger, at, payload=bytes([ledger]) * 7000))
        assert one.direct.commit()
    for ledger in ledgers:
        assert one.direct.add(stored(ledger, again))
    assert one.direct.commit()
    one.crash()
    faulty.plan("pwritev", "ENOSPC", times=-1, suffix=".log")
    one = Opened(tmp_path, files=faulty.FaultyFiles(), write_cache_bytes=6 * MIB)
    assert {status(one, ledger, count) for ledger in ledgers} == {"NO_ENTRY"}, "nothing of them was held"
    for full in (True, False):
        for ledger in ledgers:
            for at in range(count):
                held = one.direct.read(ledger, at)
                assert (held.status, held.entries()) == ("OK", [stored(ledger, at)])
                held.release()
        if full:
            faulty.clear()
            one.checkpoint()
            one.crash()
            one = Opened(tmp_path)
            assert one.report.entries == 0
    one.stop()


def test_b15_room_comes_bit_by_bit(tmp_path: Path, faulty: ModuleType) -> None:
    """The flush thread continues by itself, repeatedly, while the disk fills up again in between."""
    written(tmp_path)
    faulty.plan("pwritev", "ENOSPC", times=-1, suffix=".log")
    one = Opened(tmp_path, files=faulty.FaultyFiles(), write_cache_bytes=MIB, flush_interval_ms=5)
    flush = threading.Thread(target=one.checkpoints.run)
    flush.start()
    try:
        for passed in (2, 3, 4):
            faulty.clear()
            again = faulty.plan("pwritev", "ENOSPC", nth=passed, times=-1, suffix=".log")
            assert faulty.wait_hit(again, 60)
        faulty.clear()
        done = threading.Event()
        for _ in range(6000):
            if not one.storage.full_directories():
                break
            done.wait(0.01)
        assert statuses(one) == {"OK": COUNT}
        assert one.checkpoints.checkpoint()
    finally:
        faulty.clear()
        one.checkpoints.stop()
        flush.join()
    one.crash()


def test_b15_one_of_two_directories_is_full(tmp_path: Path, faulty: ModuleType) -> None:
    """The directory with space is flushed and its mark moves; that of the full one does not."""
    one = Opened(tmp_path, ledger_dirs=2, journals=2, write_cache_bytes=16 * MIB)
    for at in range(100):
        for ledger in range(2):
            one.direct.add(entry(ledger, at, payload=bytes(10_000)))
        assert one.direct.commit()
    one.crash()
    faulty.plan("open", "ENOSPC", times=-1, suffix="ledgers-1/current/lastId.tmp")
    one = Opened(tmp_path, ledger_dirs=2, journals=2, files=faulty.FaultyFiles(), write_cache_bytes=MIB)
    assert one.storage.full_directories() == {tmp_path / "ledgers-1"}
    assert [status(one, 0, at) for at in (0, 99, 100)] == ["OK", "OK", "NO_ENTRY"]
    assert [status(one, 1, at) for at in (0, 99, 100)] == ["OK", "UNKNOWN_STATE", "UNKNOWN_STATE"]
    one.crash()
    faulty.clear()
    one = Opened(tmp_path, ledger_dirs=2, journals=2)
    assert one.report.entries == 100
    assert [status(one, 1, at) for at in (0, 99, 100)] == ["OK", "OK", "NO_ENTRY"]
    one.stop()


def test_b14_a_ledger_that_is_deleted_while_it_lags(tmp_path: Path, faulty: ModuleType) -> None:
    """Entries of a deleted ledger that were still to be replayed do not restore it."""
    written(tmp_path)
    rule = {"times": -1, "suffix": ".log"}
    faulty.plan("pwritev", "ENOSPC", **rule)
    one = Opened(tmp_path, files=faulty.FaultyFiles(), write_cache_bytes=MIB)
    one.storage.collectors()[0].delete_ledgers([1])
    faulty.clear()
    with pytest.raises(OSError, match="no space left"):
        one.checkpoint()
    assert one.checkpoints.catch_up is not None
    assert one.checkpoints.catch_up()
    assert one.direct.ledger(1) is None
    one.checkpoint()
    one.crash()
    one = Opened(tmp_path)
    assert one.direct.ledger(1) is None
    one.stop()


@pytest.mark.parametrize("sync", [True, False])
def test_b15_the_journal_disk_is_full(tmp_path: Path, faulty: ModuleType, *, sync: bool) -> None:
    """Without a file to write to, no add is accepted and no mark moves; with space the journal opens the file."""
    written(tmp_path)
    faulty.plan("pwritev", "ENOSPC", times=-1, suffix=".preparing")
    for _ in range(2):
        one = Opened(tmp_path, files=faulty.FaultyFiles(), write_cache_bytes=16 * MIB, sync_data=sync)
        assert one.storage.full_directories() == {tmp_path / "journal-0"}
        assert statuses(one) == {"OK": COUNT}
        assert one.report.entries == COUNT + 3, "the mark did not move"
        one.crash()
    one = Opened(tmp_path, files=faulty.FaultyFiles(), write_cache_bytes=16 * MIB, sync_data=sync)
    [committer] = one.storage._journals
    threads = [
        threading.Thread(target=body)
        for body in (committer.run, committer.run_prepare, committer.run_sync)[: 2 + (not sync)]
    ]
    for thread in threads:
        thread.start()
    waiting = one.direct.fence(2)
    faulty.clear()
    assert waiting == 0 or one.direct.wait(2, waiting, 60)
    group = one.direct.add(entry(1, COUNT))
    assert one.direct.wait(1, group, 60)
    assert not one.storage.full_directories()
    one.checkpoint()
    one.pool.stop()
    committer.stop()
    for thread in threads:
        thread.join()
    one.crash()
    one = Opened(tmp_path)
    assert one.report.entries == 0
    assert status(one, 1, COUNT) == "OK"
    one.stop()


@pytest.mark.parametrize("kind", ["tmpfs", "ext4"])
def test_b15_collection_makes_room_on_a_full_file_system(tmp_path: Path, kind: str) -> None:
    """On a disk without a free byte, ledgers and dead logs are deleted, and what the journal held is flushed."""
    (tmp_path / "disk").mkdir()
    small: dict[str, Any] = {"write_cache_bytes": 4 * MIB, "log_bytes_max": MIB}
    try:
        with SmallDisk(tmp_path / "disk", kind, 48 * MIB) as disk:
            (tmp_path / "ledgers-0").symlink_to(disk.inside)
            one = Opened(tmp_path, **small)
            for ledger in range(41):
                for at in range(50):
                    one.direct.add(entry(ledger, at, payload=bytes(10_000)))
                assert one.direct.commit()
                if ledger < 40:
                    one.checkpoint()
            disk.fill()
            one.crash()
            one = Opened(tmp_path, **small)
            assert one.storage.full_directories() == {tmp_path / "ledgers-0"}
            collector = one.storage.collectors()[0]
            assert collector.delete_ledgers(range(20)) == 20
            living = set(collector.live_bytes()[0].tolist())
            dead = [log_id for log_id in collector.closed_logs().ids.tolist() if log_id not in living]
            assert len(dead) > 5
            assert {collector.unlink_log(log_id).outcome for log_id in dead} == {"unlinked"}
            one.checkpoint()
            assert not one.storage.full_directories()
            one.crash()
            one = Opened(tmp_path, **small)
            assert one.report.entries == 0
            assert [status(one, 40, at) for at in (0, 49, 50)] == ["OK", "OK", "NO_ENTRY"]
            assert status(one, 3, 0) == "NO_LEDGER"
            one.stop()
    except Unavailable as reason:
        pytest.skip(f"NOT TESTED on {kind}: {reason}")


@pytest.mark.parametrize("suffix", [".log", ".preparing"], ids=["ledger disk", "journal disk"])
def test_a_torn_group_with_records_after_it(tmp_path: Path, faulty: ModuleType, suffix: str) -> None:
    """A start on a full disk moves no mark, so a second crash leaves the torn group of the first one before records
    of a later file. The next start serves all the same.
    """
    one = Opened(tmp_path)
    for at in range(2):
        one.direct.add(entry(1, at))
        assert one.direct.commit()
    one.crash()
    (checked,) = check_journals(tmp_path / "journal-0" / "current")
    with Path(checked.path).open("r+b") as file:
        file.seek(checked.end - 4096 + 20)
        file.write(b"torn")
    faulty.plan("pwritev", "ENOSPC", times=-1, suffix=suffix)
    one = Opened(tmp_path, files=faulty.FaultyFiles())
    assert one.storage.full_directories()
    faulty.clear()
    group = one.direct.fence(1)
    if suffix == ".log":
        assert one.direct.commit()
    else:
        [committer] = one.storage._journals
        journaling = threading.Thread(target=committer.run)
        journaling.start()  # it makes the file
        assert one.direct.wait(1, group, 60)
        committer.stop()
        journaling.join()
    one.crash()
    one = Opened(tmp_path)
    assert [status(one, 1, at) for at in range(2)] == ["OK", "NO_ENTRY"]
    state = one.direct.ledger(1)
    assert state is not None
    assert state.fenced
    one.stop()
