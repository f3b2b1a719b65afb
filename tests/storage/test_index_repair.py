"""A damaged location index is detected, reported and repaired while the store serves (store.gc.index_repair,
index.salvage, index.guard, index.doubts, index.damage, index.ledger_tables, index.writes, index.lmdb_pages,
index.lmdb_tree; B6, B7).

The tests change bytes of data.mdb under an open store. Whatever the bytes: a stored entry is never denied, the
process lives, and after the repair every entry is read correctly, before and after a restart.
"""

import logging
import os
import random
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType

import pytest

from bookie._fast.store.direct import Refused
from bookie.storage.garbage.counters import Counters, OfDirectory
from bookie.storage.garbage.directory import LedgerDirectory
from bookie.storage.garbage.logs import LogCollector
from bookie.storage.garbage.settings import GarbageSettings
from tests.crash.flips.index_pages import stretches
from tests.crash.small_disk import SmallDisk
from tests.fixtures.faults import go_on
from tests.reference.storage import entry
from tests.storage.opened import Opened

KEY = b"k" * 20
LEDGERS = 40
ENTRIES = 60
PAGE = 4096
STEPS = range(61, 66)
BRANCH, LEAF, OVERFLOW, META = 1, 2, 4, 8


def data(ledger: int, number: int) -> bytes:
    """Return an entry that differs from every other; its size varies, so that runs need slots."""
    return entry(ledger, number, payload=f"{ledger}:{number}".encode() * (1 + (ledger * 31 + number * 7) % 40))


def stored(root: Path, *, ledgers: int = LEDGERS) -> Opened:
    """Store ledgers of some runs each, flushed in several checkpoints, in an index of some pages on two levels."""
    one = Opened(root)
    for first in range(0, ENTRIES, ENTRIES // 3):
        for ledger in range(ledgers):
            for number in range(first, first + ENTRIES // 3):
                one.direct.add(data(ledger, number), KEY)
        assert one.direct.commit()
        one.checkpoint()
    return one


def index_file(one: Opened) -> Path:
    """Return the index file of the only directory."""
    return one.ledger_dirs[0] / "current" / "locations.lmdb" / "data.mdb"


def newest_meta(raw: bytes) -> int:
    """Return the meta page of the newest commit."""
    return max((0, 1), key=lambda page: struct.unpack_from("<Q", raw, page * PAGE + 144)[0])


def tables(raw: bytes) -> dict[str, int]:
    """Return the root pages of all tables, including `main` and `free`."""
    at = newest_meta(raw) * PAGE
    roots = {"free": struct.unpack_from("<Q", raw, at + 80)[0], "main": struct.unpack_from("<Q", raw, at + 128)[0]}
    for key, value in nodes(raw, roots["main"]):
        if key != b"commit":  # the number of the commit
            roots[key.decode()] = struct.unpack_from("<Q", value, 40)[0]
    return roots


def nodes(raw: bytes, page: int) -> Iterator[tuple[bytes, bytes]]:
    """Yield the key and the value or child of each node of a page."""
    at = page * PAGE
    lower = struct.unpack_from("<H", raw, at + 12)[0]
    for (pointer,) in struct.iter_unpack("<H", raw[at + 16 : at + lower]):
        low, high, flags, key_size = struct.unpack_from("<4H", raw, at + pointer)
        start = at + pointer + 8
        is_branch = struct.unpack_from("<H", raw, at + 10)[0] == BRANCH
        child = struct.pack("<Q", low | high << 16 | flags << 32)
        value = child if is_branch else raw[start + key_size : start + key_size + (low | high << 16)]
        yield raw[start : start + key_size], value


def pages(raw: bytes, root: int) -> list[int]:
    """Return the pages of a tree from its root down."""
    found = [root]
    if struct.unpack_from("<H", raw, root * PAGE + 10)[0] == BRANCH:
        for _, child in nodes(raw, root):
            found += pages(raw, struct.unpack("<Q", child)[0])
    return found


def flip(one: Opened, offset: int, bit: int) -> None:
    """Flip one bit of the index, as a disk may return it."""
    with index_file(one).open("r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 1 << bit]))


def read(one: Opened, ledger: int, number: int) -> bytes:
    """Return the entry, or b"" for an I/O error. A denial fails the test."""
    held = one.direct.read(ledger, number)
    try:
        assert held.status in {"OK", "IO_ERROR", "CORRUPT"}, f"entry {number} of ledger {ledger}: {held.status}"
        return bytes(held.entries()[0]) if held.status == "OK" and held.count else b""
    finally:
        held.release()


def readable(one: Opened, *, ledgers: int = LEDGERS) -> int:
    """Return how many entries can be read, and check their bytes."""
    count = 0
    for ledger in range(ledgers):
        for number in range(ENTRIES):
            got = read(one, ledger, number)
            assert got in (b"", data(ledger, number))
            count += got != b""
    return count


def repaired(one: Opened) -> None:
    """Repair until nothing is left to repair."""
    for _ in range(10):
        if not one.storage.repairs[0].step(0):
            return
    pytest.fail("the repair finds something to do for ever")


def restarted(one: Opened, root: Path) -> Opened:
    """Restart without a checkpoint."""
    one.crash()
    return Opened(root)


def a_run(one: Opened, *, first: int = 0) -> int:
    """Return the offset of a byte inside the value of a run that begins with this entry, in its position in the log."""
    raw = index_file(one).read_bytes()
    leaves = [page for page in pages(raw, tables(raw)["locations"]) if raw[page * PAGE + 10] == LEAF]
    _, value = next(node for node in nodes(raw, leaves[0]) if len(node[0]) == 16 and node[0][8:] == first.to_bytes(8))
    return raw.rindex(value, leaves[0] * PAGE, (leaves[0] + 1) * PAGE) + 14  # below it, the page may have old nodes


def test_a_damaged_run_is_found_again_in_the_entry_logs(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A value with a wrong checksum causes EIO for its entries, a metric and a log line; then all entries are
    restored without a restart.
    """
    one = stored(tmp_path)
    flip(one, a_run(one), 3)
    assert readable(one) < LEDGERS * ENTRIES
    stats = one.storage.stats()
    assert stats["index_damage"] > 0
    with caplog.at_level(logging.WARNING):
        one.storage.tell_damage()
    assert "the location index is damaged" in caplog.text
    repaired(one)
    assert one.storage.stats()["doubtful_ledgers"] == 0
    assert readable(one) == LEDGERS * ENTRIES
    again = restarted(one, tmp_path)
    assert readable(again) == LEDGERS * ENTRIES
    again.stop()


def test_nothing_is_denied_between_the_two_halves(tmp_path: Path) -> None:
    """The new index serves what could be read, and of ledgers that lost runs no entry is denied, even after a crash."""
    one = stored(tmp_path)
    flip(one, a_run(one), 3)
    readable(one)
    one.storage.repairs[0].salvage()
    assert one.storage.stats()["doubtful_ledgers"] > 0
    assert readable(one) < LEDGERS * ENTRIES
    again = restarted(one, tmp_path)
    assert again.storage.stats()["doubtful_ledgers"] > 0
    assert readable(again) < LEDGERS * ENTRIES
    repaired(again)
    assert readable(again) == LEDGERS * ENTRIES
    again.stop()


def test_b7_a_doubt_that_ends_during_a_look_up(tmp_path: Path, faulty: ModuleType) -> None:
    """A look-up of a ledger's last entry that began while the last run was lost does not deny it, although the doubt
    ends before the look-up does.
    """
    one = stored(tmp_path)
    flip(one, a_run(one, first=ENTRIES * 2 // 3), 3)
    readable(one)
    one.storage.repairs[0].salvage()
    (ledger,) = {ledger for ledger in range(LEDGERS) if not read(one, ledger, ENTRIES - 1)}
    one.crash()
    one = Opened(tmp_path, files=faulty.FaultyFiles())
    read(one, (ledger + LEDGERS // 2) % LEDGERS, 0)  # the reader has another page in memory now
    rule = faulty.plan("pread", "STALL", suffix="data.mdb")
    with ThreadPoolExecutor(1) as threads:
        found = threads.submit(read, one, ledger, -1)
        try:
            assert faulty.wait_hit(rule, 60)
            repaired(one)
            assert one.storage.stats()["doubtful_ledgers"] == 0
        finally:
            go_on()
        assert found.result() in {b"", data(ledger, ENTRIES - 1)}
    assert read(one, ledger, -1) == data(ledger, ENTRIES - 1)
    one.stop()


def test_a_damaged_doubt_is_found_by_a_scrub(tmp_path: Path) -> None:
    """Answers follow the doubts in memory, which a start reads, so the repair rewrites a damaged one before that."""
    one = stored(tmp_path)
    flip(one, a_run(one), 3)
    readable(one)
    one.storage.repairs[0].salvage()
    doubtful = one.storage.stats()["doubtful_ledgers"]
    assert doubtful > 0
    leaf = max(each.end for each in stretches(index_file(one).read_bytes()) if each.part == "doubts leaf")
    flip(one, leaf - 1, 0)
    with pytest.raises(OSError, match="damaged"):
        one.storage.scrubbers()[0].check_tables()
    one.storage.repairs[0].salvage()
    assert one.storage.stats()["doubtful_ledgers"] == doubtful
    one.storage.scrubbers()[0].check_tables()
    repaired(one)
    assert readable(one) == LEDGERS * ENTRIES
    one.stop()


def test_what_is_flushed_meanwhile_stays(tmp_path: Path) -> None:
    """Entries that are written again between salvage and search keep their latest contents."""
    one = stored(tmp_path)
    flip(one, a_run(one), 3)
    readable(one)
    one.storage.repairs[0].salvage()
    fresh = {ledger: entry(ledger, 5, payload=b"again") for ledger in range(LEDGERS)}
    for each in fresh.values():
        one.direct.add(each, KEY, recovery=True)
    assert one.direct.commit()
    one.checkpoint()
    repaired(one)
    again = restarted(one, tmp_path)
    for ledger, each in fresh.items():
        assert read(again, ledger, 5) == each
        assert read(again, ledger, 6) == data(ledger, 6)
    again.stop()


@pytest.mark.parametrize("where", ["locations", "ledgers", "main", "free", "meta"])
def test_a_flush_does_not_walk_into_damage(tmp_path: Path, where: str) -> None:
    """Whichever page LMDB would use, the flush waits for the repair and loses nothing, and the process lives."""
    one = stored(tmp_path)
    raw = index_file(one).read_bytes()
    page = newest_meta(raw) if where == "meta" else tables(raw)[where]
    flip(one, page * PAGE + (130 if where == "meta" else 12), 1)
    one.direct.add(data(LEDGERS, 0), KEY)
    assert one.direct.commit()
    with pytest.raises(OSError, match="damaged"):
        one.checkpoint()
    assert read(one, LEDGERS, 0) == data(LEDGERS, 0)
    repaired(one)
    one.checkpoint()
    assert readable(one) == LEDGERS * ENTRIES
    again = restarted(one, tmp_path)
    assert readable(again) == LEDGERS * ENTRIES
    assert read(again, LEDGERS, 0) == data(LEDGERS, 0)
    again.stop()


def test_what_a_damaged_log_may_hide_stays_in_doubt(tmp_path: Path) -> None:
    """The ledgers in a closed log with a torn record are not denied, and are quarantined."""
    one = stored(tmp_path)
    flip(one, a_run(one), 3)
    readable(one)
    one.storage.repairs[0].salvage()
    every = ((ledger, number) for ledger in range(LEDGERS) for number in range(ENTRIES))
    lost = next(place for place in every if not read(one, *place))
    one = restarted(one, tmp_path)
    for log in (one.ledger_dirs[0] / "current").glob("*.log"):
        with log.open("r+b") as file:
            file.seek(1024)
            file.write(b"\x7f\xff\xff\xff")
    repaired(one)
    assert one.storage.stats()["doubtful_ledgers"] > 0
    assert one.storage.stats()["quarantined_ledgers"] > 0
    assert read(one, *lost) == b""
    with pytest.raises(Refused):
        one.direct.add(data(lost[0], ENTRIES), KEY)
    one.stop()


CRASHING = """
import sys
import threading
import time
from pathlib import Path
from bookie._fast.base.crash_steps import crash_after_step
from tests.storage.test_index_repair import a_run, flip, readable, repaired, stored

one = stored(Path(sys.argv[1]))
flip(one, a_run(one), 3)
readable(one)
crash_after_step(int(sys.argv[2]))
repaired(one)
"""


@pytest.mark.thorough
@pytest.mark.parametrize("step", STEPS)
def test_a_crash_at_each_step_leaves_one_index_whole(tmp_path: Path, step: int) -> None:
    """After a crash at any step the next start has the old or the new index, denies nothing, repairs the rest, and
    reads every entry.
    """
    command = [sys.executable, "-c", CRASHING, str(tmp_path), str(step)]
    ended = subprocess.run(command, capture_output=True, timeout=120, check=False)
    assert ended.returncode == -signal.SIGABRT, ended.stderr.decode()
    again = Opened(tmp_path)
    readable(again)
    repaired(again)
    assert readable(again) == LEDGERS * ENTRIES
    again.stop()


@pytest.mark.parametrize("where", ["locations", "ledgers", "free"])
def test_a_start_with_a_damaged_index_mends_it(tmp_path: Path, where: str) -> None:
    """Readable entries are served at once, ledgers without a readable record are restored as fenced, and the rest is
    found in the logs.
    """
    one = stored(tmp_path)
    one.direct.fence(3, KEY)
    one.stop()
    flip(one, tables(index_file(one).read_bytes())[where] * PAGE + 12, 1)
    again = Opened(tmp_path)
    readable(again)
    repaired(again)
    assert readable(again) == LEDGERS * ENTRIES
    state = again.direct.ledger(3)
    assert state is not None
    assert state.fenced
    again.stop()
    last = Opened(tmp_path)
    assert readable(last) == LEDGERS * ENTRIES
    last.stop()


def test_tables_of_an_earlier_commit_deny_nothing(tmp_path: Path) -> None:
    """B7: after a lost write, the page that names all tables may be sound and tell of an index that was still empty.

    The ledgers that the entry logs name are restored, and all their entries are found.
    """
    one = Opened(tmp_path)
    early = index_file(one).read_bytes()
    one.stop()
    one = stored(tmp_path)
    one.stop()
    late = index_file(one).read_bytes()
    main, before = tables(late)["main"], tables(early)["main"]
    with index_file(one).open("r+b") as file:
        file.seek(main * PAGE)
        file.write(struct.pack("<Q", main) + early[before * PAGE + 8 : (before + 1) * PAGE])
    again = Opened(tmp_path)
    readable(again)
    repaired(again)
    assert readable(again) == LEDGERS * ENTRIES
    again.stop()
    last = Opened(tmp_path)
    assert readable(last) == LEDGERS * ENTRIES
    last.stop()


def test_tables_of_another_commit_leave_all_ledgers_in_doubt(tmp_path: Path) -> None:
    """B7: if the main tree is of another commit than the newest, nothing is denied before the logs are searched."""
    one = stored(tmp_path)
    one.stop()
    raw = index_file(one).read_bytes()
    page = tables(raw)["main"] * PAGE
    number = raw.index(b"commit", page) + len("commit") + 7
    assert number < page + PAGE
    flip(one, number, 1)
    again = Opened(tmp_path)
    for ledger in range(LEDGERS):
        assert read(again, ledger, ENTRIES + 5) == b""
    repaired(again)
    assert readable(again) == LEDGERS * ENTRIES
    again.stop()


ON_A_FULL_DISK = """
import os, sys
from pathlib import Path
from tests.storage.test_index_repair import ENTRIES, LEDGERS, a_run, flip, readable, repaired, stored

one = stored(Path(sys.argv[1]))
flip(one, a_run(one), 3)
readable(one)
with open(Path(sys.argv[1]) / "filler", "wb", buffering=0) as filler:
    try:
        while True:
            filler.write(bytes(4096))
    except OSError:
        pass
full = os.path.getsize(filler.name)
for room in (0, 64 << 10, 80 << 10):
    os.truncate(filler.name, full - room)
    try:
        one.storage.repairs[0].salvage()
        sys.exit(f"{room} bytes were room enough")
    except OSError as error:
        print(error)
assert readable(one) < LEDGERS * ENTRIES
os.unlink(Path(sys.argv[1]) / "filler")
one.storage.repairs[0]._repair.note()
repaired(one)
assert readable(one) == LEDGERS * ENTRIES
one.stop()
"""


def test_a_full_disk_puts_a_repair_off(tmp_path: Path) -> None:
    """Without space the old index serves as far as it can, nothing is denied, and with space the repair succeeds."""
    disk = tmp_path / "disk"
    disk.mkdir()
    with SmallDisk(disk, "tmpfs", 48 << 20) as small:
        command = small.enter([sys.executable, "-c", ON_A_FULL_DISK, str(disk)])
        there = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
        ended = subprocess.run(command, capture_output=True, timeout=120, check=False, env=there)
    assert ended.returncode == 0, ended.stderr.decode()
    assert ended.stdout.decode().lower().count("no space") == 3


def test_garbage_collection_goes_on_beside_damage(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Garbage collection keeps the logs of a directory whose index cannot be walked, and its thread survives."""
    one = stored(tmp_path)
    (collector,) = one.storage.collectors()
    directory = LedgerDirectory(collector, GarbageSettings())
    counters = Counters([OfDirectory()])
    logs = LogCollector(GarbageSettings(), [directory], counters, lambda *_: True, 1 << 20)
    before = set((one.ledger_dirs[0] / "current").glob("*.log"))
    flip(one, a_run(one), 3)
    with caplog.at_level(logging.ERROR):
        logs.measure()
    assert "no entry log is collected" in caplog.text
    assert set((one.ledger_dirs[0] / "current").glob("*.log")) == before
    repaired(one)
    assert readable(one) == LEDGERS * ENTRIES
    one.stop()


def test_the_thread_repairs_by_itself(tmp_path: Path) -> None:
    """Reads continue during the repair, deny nothing, and finally return every entry; the thread ends on request."""
    one = stored(tmp_path)
    thread = threading.Thread(target=one.storage.repairs[0].run)
    thread.start()
    flip(one, a_run(one), 3)
    deadline, count = time.monotonic() + 60, 0
    while time.monotonic() < deadline:
        count = readable(one)
        if count == LEDGERS * ENTRIES and one.storage.stats()["index_repairs"]:
            break
    assert count == LEDGERS * ENTRIES
    one.storage.repairs[0].stop()
    thread.join(60)
    assert not thread.is_alive()
    one.stop()


@pytest.mark.thorough
def test_flips_anywhere_under_flushes(tmp_path: Path) -> None:
    """With random flips and a flush after each, the process lives, nothing is lost, and everything is found."""
    seeded_random = random.Random(5)
    one = stored(tmp_path)
    for turn in range(150):
        flip(one, seeded_random.randrange(index_file(one).stat().st_size), seeded_random.randrange(8))
        ledger = seeded_random.randrange(LEDGERS)
        one.direct.add(data(ledger, ENTRIES + turn), KEY)
        assert one.direct.commit()
        try:
            one.checkpoint()
        except OSError:
            repaired(one)
            one.checkpoint()
    one.storage.repairs[0].salvage()
    repaired(one)
    assert readable(one) == LEDGERS * ENTRIES
    again = restarted(one, tmp_path)
    assert readable(again) == LEDGERS * ENTRIES
    again.stop()
