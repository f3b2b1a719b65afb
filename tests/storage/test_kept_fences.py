"""A fence outlives its ledger (store.gc.kept_fences): a fenced writer cannot recreate a deleted ledger (B8, B14)."""

import struct
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from bookie._fast.store.direct import Refused
from bookie._fast.store.gc import kept_fences
from bookie.storage.garbage.contracts import Standing
from bookie.storage.garbage.counters import Counters, OfDirectory
from bookie.storage.garbage.directory import LedgerDirectory
from bookie.storage.garbage.ledgers import LedgerCollector
from bookie.storage.garbage.settings import GarbageSettings
from bookie.storage.tools.rebuild_index import rebuild_index
from bookie.storage.tools.rebuild_ledgers import Place, rebuild_ledgers
from tests.crash.flips.index_pages import stretches
from tests.reference.storage import entry, lac_packet
from tests.storage.collecting import KEY, Collecting

DAY_MS = 86_400_000
WEEK_MS = 7 * DAY_MS


def pass_time(one: Collecting, ms: int) -> None:
    """Advance the bookie's running time."""
    [handle] = one.one.storage._directory_stores
    kept_fences.pass_time(handle, ms)


class Nobody:
    """A metadata store of the cluster in the bookie's cookie that lists no ledgers."""

    def instance_id(self) -> str | None:
        return None

    def seen(self) -> str | None:
        return self.instance_id()

    def ranges(self) -> Iterator[list[int]]:
        yield from ()

    def standing(self, ledger: int) -> Standing:
        raise AssertionError(f"nobody asks for ledger {ledger}")

    def replication_lock(self, ledger: int) -> AbstractContextManager[bool]:
        raise AssertionError(f"nobody locks ledger {ledger}")


def fenced_and_deleted(root: Path) -> Collecting:
    """Return a storage in which ledger 1, with 20 entries, was fenced and then deleted as garbage."""
    one = Collecting(root)
    one.add(1, range(20))
    one.one.direct.fence(1, KEY)
    one.model.fence(1, KEY)
    assert one.one.direct.commit()
    assert one.delete(1) == 1
    return one


def late_add(one: Collecting, ledger: int) -> str:
    """Return the answer to an add of the old writer."""
    try:
        one.one.direct.add(entry(ledger, 20), KEY)
    except Refused as refused:
        return refused.status
    return "OK"


@pytest.mark.parametrize("crash", [False, True])
def test_b8_a_late_writer_of_a_deleted_ledger_is_fenced(tmp_path: Path, crash: bool) -> None:
    """The late writer is refused at once and after any restart, and the ledger is not created."""
    one = fenced_and_deleted(tmp_path)
    for _ in range(2):
        assert late_add(one, 1) == "FENCED"
        with pytest.raises(Refused, match="NO_LEDGER"):
            one.one.direct.write_lac(lac_packet(1, 5), KEY)
        assert one.one.direct.ledger(1) is None
        assert one.one.storage.stats()["kept_fences"] == 1
        one.restart(crash=crash)
    one.one.stop()


def test_b8_what_is_copied_here_again_is_fenced_from_the_start(tmp_path: Path) -> None:
    """Recovery adds create a ledger again, because it may have moved away and returned; its writer is still refused,
    even after a crash before the first checkpoint, and after a further deletion.
    """
    one = fenced_and_deleted(tmp_path)
    one.add(1, range(3))
    assert late_add(one, 1) == "FENCED"
    one.restart(crash=True)
    one.check()
    state = one.one.direct.ledger(1)
    assert state is not None
    assert state.fenced
    assert one.delete(1) == 1
    assert late_add(one, 1) == "FENCED"
    one.one.stop()


@pytest.mark.parametrize("records_too", [False, True])
def test_b8_a_rebuilt_index_lets_no_late_writer_in(tmp_path: Path, records_too: bool) -> None:
    """Deleted ledgers whose entries are still in the logs are restored as fenced, and can be deleted again, so
    nothing stays. Those that are gone from the logs too keep their fence.
    """
    one = fenced_and_deleted(tmp_path)
    one.restart()
    assert {found.outcome for found in one.cycle()} == {"unlinked"}
    one.add(2, range(20))
    one.one.direct.fence(2, KEY)
    one.model.fence(2, KEY)
    assert one.delete(2) == 1
    one.one.stop()
    index = one.directory / "locations.lmdb"
    if records_too:
        journals = [directory / "current" for directory in one.one.journal_dirs]
        rebuild_ledgers(Place(directory=one.directory, index=index, journals=journals), key_of=lambda _: None)
    else:
        assert rebuild_index(one.directory, index).without_record == (2,)
    one.open()
    found = one.collector.ledger_ids().tolist()
    assert found == ([1, 2] if records_too else [2])  # the journals have both
    for _ in range(2):
        assert [late_add(one, ledger) for ledger in (1, 2)] == ["FENCED", "FENCED"]
        one.delete(*found)
    one.restart()
    assert {found.outcome for found in one.cycle()} == {"unlinked"}
    one.one.stop()


def test_a_ledger_that_nobody_fenced_begins_anew_and_is_collected_again(tmp_path: Path) -> None:
    """As in Apache BookKeeper, a writer of an unfenced ledger creates it again, and the next deletion removes it."""
    one = Collecting(tmp_path)
    one.add(1, range(20))
    assert one.delete(1) == 1
    assert late_add(one, 1) == "OK"
    assert one.one.direct.commit()
    assert one.collector.ledger_ids().tolist() == [1]
    assert one.delete(1) == 1
    one.restart()
    assert one.collector.ledger_ids().tolist() == []
    assert {result.outcome for result in one.cycle()} == {"unlinked"}
    one.one.stop()


def test_b8_a_wall_clock_that_jumps_drops_no_fence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the clock jumped forwards, a fence would be dropped too early; backwards, it would be kept for ever."""
    one = fenced_and_deleted(tmp_path)
    stopping = threading.Event()
    directory = LedgerDirectory(one.collector, GarbageSettings())
    policy = LedgerCollector(
        GarbageSettings(), [directory], Nobody(), lambda: None, lambda: True, Counters([OfDirectory()]), stopping
    )
    real = time.time_ns
    for days in (30, 3650, -3650):
        monkeypatch.setattr(time, "time_ns", lambda days=days: real() + days * DAY_MS * 1_000_000)
        assert policy.run(over_replicated=False, mass_deletion=False)
        assert late_add(one, 1) == "FENCED"
    pass_time(one, WEEK_MS)
    assert policy.run(over_replicated=False, mass_deletion=False)
    assert one.one.storage.stats()["kept_fences"] == 0
    one.one.stop()


@pytest.mark.parametrize("crash", [False, True])
def test_a_fence_grows_old_over_restarts(tmp_path: Path, crash: bool) -> None:
    """Only time in which a bookie ran on the directory counts, and a restart does not reset it. If a crash undid the
    record of that time, the fence begins to age anew.
    """
    one = fenced_and_deleted(tmp_path)
    pass_time(one, 4 * DAY_MS)
    assert one.collector.drop_fences(WEEK_MS) == 0
    one.restart(crash=crash)
    pass_time(one, 2 * DAY_MS)
    assert one.collector.drop_fences(WEEK_MS) == 0
    one.add(2, range(2))
    pass_time(one, DAY_MS // 48)
    one.one.direct.fence(2, KEY)
    assert one.one.direct.commit()
    assert one.delete(2) == 1
    one.restart(crash=crash)
    pass_time(one, DAY_MS)
    assert one.collector.drop_fences(WEEK_MS) == 1
    assert late_add(one, 2) == "FENCED"
    pass_time(one, WEEK_MS)
    assert one.collector.drop_fences(WEEK_MS) == 1
    one.one.stop()


def test_fences_are_dropped_by_the_time_of_deletion(tmp_path: Path) -> None:
    """Only fences of older deletions are dropped, permanently, even if there are more than fit in one transaction."""
    one = fenced_and_deleted(tmp_path)
    assert one.collector.drop_fences(WEEK_MS) == 0
    assert late_add(one, 1) == "FENCED"
    assert one.collector.drop_fences(0) == 1
    one.restart(crash=True)
    assert one.one.storage.stats()["kept_fences"] == 0
    assert late_add(one, 1) == "OK"
    many = range(100, 20_200)
    for ledger in many:
        one.one.direct.fence(ledger, KEY)
        if ledger % 1000 == 0:
            assert one.one.direct.commit()
    assert one.one.direct.commit()
    one.one.checkpoint()
    assert one.collector.delete_ledgers(many) == len(many)
    assert one.one.storage.stats()["kept_fences"] == len(many)
    assert one.collector.drop_fences(0) == len(many)
    assert one.one.storage.stats()["kept_fences"] == 0
    one.one.stop()


def test_b8_a_fence_beside_the_deletion_is_not_lost(tmp_path: Path) -> None:
    """Whether the fence comes before the deletion, during it or after it, the writer is fenced once both are done."""
    one = Collecting(tmp_path)
    user = one.one.user()
    for ledger in range(60):
        one.one.direct.add(entry(ledger, 0), KEY)
        assert one.one.direct.commit()
        one.one.checkpoint()
        fencing = threading.Thread(target=user.fence, args=(ledger, KEY))
        fencing.start()
        one.collector.delete_ledgers([ledger])
        fencing.join()
        assert late_add(one, ledger) == "FENCED"
    assert one.one.direct.commit()
    user.close()
    one.restart()
    assert {late_add(one, ledger) for ledger in range(60)} == {"FENCED"}
    one.one.stop()


@pytest.mark.parametrize("clock", [False, True])
def test_b8_a_damaged_fence_is_a_fence(tmp_path: Path, clock: bool) -> None:
    """A flipped bit in a fence, or in the clock's value, refused every start with "cannot read the ledgers index";
    the ledger is now fenced.
    """
    one = fenced_and_deleted(tmp_path)
    pass_time(one, DAY_MS)
    kept_fences.drop_fences(one.one.storage._directory_stores[0], WEEK_MS)  # this stores the clock
    one.one.crash()
    path = tmp_path / "ledgers-0/current/locations.lmdb/data.mdb"
    data = bytearray(path.read_bytes())
    key = struct.pack(">q", -1 if clock else 1)
    found = [each for each in stretches(bytes(data)) if each.part == "fences leaf"]
    data[max(each.end for each in found if key in data[each.begin : each.end]) - 1] ^= 4
    path.write_bytes(data)
    one.open()
    assert late_add(one, 1) == "FENCED"
    one.restart(crash=True)
    assert late_add(one, 1) == "FENCED"
    one.stop()


@pytest.mark.parametrize("crash", [False, True])
@pytest.mark.parametrize("needed_by", ["add", "fence"])
def test_b8_a_fence_that_was_needed_is_kept_as_long_again(tmp_path: Path, needed_by: str, crash: bool) -> None:
    """A writer that was refused is alive, and a recovery that was answered counts on the fence. Once a pass has stored
    it, this also holds after a crash.
    """
    one = fenced_and_deleted(tmp_path)
    pass_time(one, 6 * DAY_MS)
    if needed_by == "add":
        assert late_add(one, 1) == "FENCED"
    else:
        with pytest.raises(Refused, match="NO_LEDGER"):
            one.one.direct.fence(1, KEY)
    assert one.collector.drop_fences(WEEK_MS) == 0
    one.restart(crash=crash)
    pass_time(one, 6 * DAY_MS)
    assert one.collector.drop_fences(WEEK_MS) == 0
    pass_time(one, DAY_MS)
    assert one.collector.drop_fences(WEEK_MS) == 1
    assert one.one.storage.stats()["kept_fences"] == 0
    one.one.stop()
