"""Reads during garbage collection: a log that goes between look-up and read, read-aheads in flight, ledgers deleted
under load.

Stalled calls force the interleavings that matter; a run with real threads looks for unforeseen ones.
"""

import functools
import random
import threading
from pathlib import Path
from types import ModuleType

import pytest

from tests.reference.storage import entry
from tests.storage.collecting import KEY, KIB, Collecting
from tests.storage.collection_scenarios import SCENARIOS


@pytest.mark.usefixtures("faulty")
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_scenario(scenario: str, tmp_path: Path) -> None:
    """B7, B13, B14, ST4: each scenario passes with nothing planted; tests/crash runs them with a bug."""
    SCENARIOS[scenario].tell(tmp_path)


def test_b14_a_look_up_of_the_last_entry_of_a_deleted_ledger(tmp_path: Path, faulty: ModuleType) -> None:
    """What a look-up found before a ledger was deleted says nothing about a new ledger with its id."""
    one = Collecting(tmp_path, files=faulty.FaultyFiles())
    one.add(1, range(20))
    one.restart()
    rule = faulty.plan("pread", "STALL", suffix="data.mdb")
    user = one.one.user()
    reader = threading.Thread(target=lambda: user.read(1, -1).release())
    reader.start()
    try:
        assert faulty.wait_hit(rule, 60)
        assert one.collector.delete_ledgers([1]) == 1
        one.model.delete(1)
        one.add(1, range(3), b"new")
    finally:
        faulty.release()
        reader.join()
        user.close()
        faulty.clear()
    one.check()
    one.stop()


def test_no_flush_waits_while_the_disk_frees_a_log(tmp_path: Path, faulty: ModuleType) -> None:
    """Freeing the blocks of a log of a gigabyte takes a second. It happens when the last descriptor is closed."""
    one = Collecting(tmp_path, files=faulty.FaultyFiles())
    one.add(1, range(200))
    one.restart()
    one.delete(1)
    log_id = one.closed()[0]
    rule = faulty.plan("close", "STALL", suffix=f"/{log_id:x}.log", nth=2)  # the first one is after the look at its map
    collecting = threading.Thread(target=one.collector.unlink_log, args=(log_id,))
    collecting.start()
    try:
        assert faulty.wait_hit(rule, 60)
        assert not (one.directory / f"{log_id:x}.log").exists()
        one.add(2, range(3))
        one.one.checkpoint()
    finally:
        faulty.release()
        collecting.join()
        faulty.clear()
    one.check()
    one.stop()


@functools.cache
def payload(ledger: int, at: int) -> bytes:
    """Return a payload that every reader can verify by itself."""
    return entry(ledger, at, payload=random.Random(ledger * 1000 + at).randbytes(400))


def fill(one: Collecting) -> None:
    """Write four ledgers to many logs."""
    for ledger in range(4):
        for at in range(300):
            one.one.direct.add(payload(ledger, at), KEY)
            if at % 20 == 19:
                one.one.direct.commit()
                one.one.checkpoint()


def move_everything(one: Collecting) -> None:
    """Compact each closed log, while a further ledger comes and goes."""
    one.one.direct.add(entry(9, 0, payload=bytes(9000)), KEY)
    one.one.direct.commit()
    one.one.checkpoint()
    one.collector.delete_ledgers([9])
    one.collector.finish()
    assert {result.outcome for result in one.cycle()} == {"unlinked"}


@pytest.mark.thorough
def test_reads_while_everything_moves(tmp_path: Path) -> None:
    """B21: four readers never see a wrong byte, a gap or an error while each log is compacted repeatedly."""
    one = Collecting(tmp_path, read_cache_bytes=128 * KIB, read_segment_bytes=32 * KIB, open_logs_max=2)
    fill(one)
    done = threading.Event()
    wrong: list[str] = []
    extra = [threading.Thread(target=one.one.pool.run, args=(0,)) for _ in range(2)]
    users = [one.one.user() for _ in range(4)]

    def read(number: int) -> None:
        numbers = random.Random(number)
        while not done.is_set() and not wrong:
            ledger, at = numbers.randrange(4), numbers.randrange(300)
            held = users[number].read(ledger, at, count=numbers.choice([1, 5, 60]), size=64 * KIB)
            found = held.entries()
            if not found or found != [payload(ledger, at + i) for i in range(len(found))]:
                wrong.append(f"ledger {ledger} entry {at}: {held.status}, {len(found)} entries")
            held.release()

    readers = [threading.Thread(target=read, args=(number,)) for number in range(len(users))]
    for thread in (*extra, *readers):
        thread.start()
    try:
        for _ in range(5):
            move_everything(one)
    finally:
        done.set()
        for thread in readers:
            thread.join()
        for user in users:
            user.close()
        one.one.pool.stop()
        for thread in extra:  # join before closing the stores that they read
            thread.join()
        one.one.crash()
    assert not wrong
