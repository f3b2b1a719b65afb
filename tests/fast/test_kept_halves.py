"""Test flushed halves that stay readable (store.kept_halves): reads of them need no disk and find the newest copies,
nothing comes back from them, and their memory is bounded.
"""

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from bookie._fast.store.direct import Held
from tests.reference.storage import entry
from tests.storage.collecting import Collecting
from tests.storage.opened import KIB, MIB, Opened

OpenedWith = Callable[..., Opened]
KEPT_MOST = 8
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[OpenedWith]:
    """Return a function that opens storage which keeps flushed halves. It is closed after the test."""
    made: list[Opened] = []

    def make(**settings: object) -> Opened:
        made.append(Opened(tmp_path, keep_flushed=True, **settings))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for one in made:
        one.crash()


def add(one: Opened, ledger: int, ids: range, mark: bytes = b"first", size: int = 100) -> list[bytes]:
    """Store entries with these ids, and return them."""
    entries = [entry(ledger, at, payload=mark + bytes(size)) for at in ids]
    for at, data in enumerate(entries):
        one.direct.add(data, recovery=True)
        if at % 100 == 99:
            assert one.direct.commit(), "the journal's buffer takes 2 MiB"
    assert one.direct.commit()
    return entries


def take(held: Held) -> list[bytes]:
    """Return the entries of a response, and release it."""
    assert held.status == "OK"
    found = held.entries()
    held.release()
    return found


def read(one: Opened, ledger: int, first: int, count: int) -> list[bytes]:
    """Return entries that one batch holds."""
    return take(one.direct.read(ledger, first, count=count, size=MIB))


def disk_reads(one: Opened) -> int:
    return int(one.storage.stats()["disk_reads"])


def test_what_was_flushed_is_read_from_memory(opened: OpenedWith) -> None:
    """The entries of several flushes are served without the disk, each alone and all together."""
    one = opened()
    stored: list[bytes] = []
    for first in range(0, 50, 10):
        stored += add(one, 3, range(first, first + 10))
        one.checkpoint()
    assert [data for at in range(50) for data in read(one, 3, at, 1)] == stored
    assert read(one, 3, 0, 50) == stored
    assert disk_reads(one) == 0


def test_nothing_is_kept_unless_it_is_wanted(opened: OpenedWith, tmp_path: Path) -> None:
    """Without the setting, and after a restart, flushed entries are read from disk."""
    one = Opened(tmp_path / "other")
    stored = add(one, 3, range(10))
    one.checkpoint()
    assert (read(one, 3, 0, 10), disk_reads(one)) == (stored, 1)
    assert one.storage.stats()["kept_bytes"] == 0
    one.crash()
    one = opened()
    stored = add(one, 3, range(10))
    one.checkpoint()
    assert one.storage.stats()["kept_bytes"] > 0
    one.crash()
    again = Opened(tmp_path, keep_flushed=True)
    assert (read(again, 3, 0, 10), disk_reads(again)) == (stored, 1)
    again.crash()
    opened()


def test_the_newest_copy_is_served_from_every_layer(opened: OpenedWith) -> None:
    """B21: of entries that were added again before each flush, the last copy counts, from whichever half it comes, and
    a batch goes from half to half.
    """
    one = opened()
    newest = dict(enumerate(add(one, 7, range(40))))
    for version in range(1, 12):
        one.checkpoint()
        again = range(version * 3, version * 3 + 5)
        newest |= zip(again, add(one, 7, again, b"again %d" % version), strict=True)
        assert read(one, 7, 0, 40) == list(newest.values())
    one.checkpoint()
    assert read(one, 7, 0, 40) == list(newest.values())
    assert [read(one, 7, at, 1) for at in newest] == [[data] for data in newest.values()]


def test_an_old_copy_in_the_read_cache_gives_way(opened: OpenedWith) -> None:
    """B21: an entry that was read from disk, and is then added again, is served as it was added last, also when the
    half that holds it is dropped.
    """
    one = opened()
    add(one, 7, range(10))
    for other in range(KEPT_MOST + 1):
        add(one, 100 + other, range(1))
        one.checkpoint()
    read(one, 7, 0, 10)
    assert disk_reads(one) == 1
    new = add(one, 7, range(4, 6), b"second")
    for other in range(KEPT_MOST + 2):
        one.checkpoint()
        assert read(one, 7, 4, 2) == new
        add(one, 200 + other, range(1))
    assert disk_reads(one) == 2, "once more after the half with the new copies was dropped"


def test_a_deleted_ledger_does_not_come_back(tmp_path: Path) -> None:
    """B14: after a deletion nothing of a ledger is found in kept halves, also if it is created again."""
    one = Collecting(tmp_path, keep_flushed=True)
    one.add(1, range(10), b"old")
    one.one.checkpoint()
    one.add(1, range(10, 20), b"old")
    one.add(2, range(10), b"other")
    assert one.delete(1) == 1
    assert one.one.direct.read(1, 0).status == "NO_LEDGER"
    one.add(1, range(5, 7), b"new")
    for _ in range(3):
        assert one.one.direct.read(1, 0).status == "NO_ENTRY"
        assert one.one.direct.read(1, 10).status == "NO_ENTRY"
        one.check()
        one.one.checkpoint()
        one.add(2, range(10), b"once more")
    one.one.crash()


def test_entries_outlive_the_log_that_they_were_flushed_to(tmp_path: Path) -> None:
    """B6: while logs are compacted and unlinked, their entries are served from kept halves, and later from the copy."""
    one = Collecting(tmp_path, keep_flushed=True, log_bytes_max=4 * KIB)
    for first in range(0, 60, 10):
        one.add(1, range(first, first + 10))
        one.add(2, range(first, first + 10))
        one.one.checkpoint()
    one.delete(2)
    one.cycle()
    one.check()
    for _ in range(KEPT_MOST + 1):
        one.add(3, range(2))
        one.one.checkpoint()
    one.check()
    one.one.crash()


def test_a_reader_keeps_a_half_from_being_reused(opened: OpenedWith) -> None:
    """B21: bytes that a response points into do not change; only the swap that needs their memory waits for it."""
    one = opened(write_cache_bytes=MIB)
    stored = add(one, 1, range(40), size=5000)
    one.checkpoint()
    held = one.direct.read(1, 0, count=40, size=MIB)
    assert (held.count, one.direct.pins()["halves"], disk_reads(one)) == (40, held.slices, 0)
    later = add(one, 2, range(40), size=5000)
    swap = threading.Thread(target=one.checkpoint, daemon=True)
    swap.start()
    assert read(one, 2, 0, 40) == later
    assert held.entries() == stored
    assert swap.is_alive()
    held.release()
    swap.join()
    assert (read(one, 2, 0, 40), disk_reads(one)) == (later, 0)
    assert read(one, 1, 0, 40) == stored
    assert disk_reads(one) > 0
    assert one.direct.pins()["halves"] == 0


def test_a_flush_that_fails_keeps_everything(opened: OpenedWith, tmp_path: Path, faulty: ModuleType) -> None:
    """B18: while a full disk takes nothing, what was flushed before and what was not is served, in the right order."""
    one = opened(files=faulty.FaultyFiles())
    old = add(one, 1, range(10))
    one.checkpoint()
    new = add(one, 1, range(3, 5), b"second")
    faulty.plan("pwritev", "ENOSPC", suffix=".log", times=-1)
    for _ in range(2):
        with pytest.raises(OSError, match="no space"):
            one.checkpoint()
        assert read(one, 1, 0, 10) == old[:3] + new + old[5:]
    newest = add(one, 1, range(4, 5), b"third")
    assert read(one, 1, 0, 10) == old[:3] + new[:1] + newest + old[5:]
    faulty.clear()
    for _ in range(3):
        one.checkpoint()
        assert read(one, 1, 0, 10) == old[:3] + new[:1] + newest + old[5:]
    assert disk_reads(one) == 0


def test_kept_halves_fit_into_half_of_the_cache(opened: OpenedWith) -> None:
    """However large flushes are, kept halves take at most half of the cache. Large ones make room for small ones and
    the other way round, and everything is served.
    """
    one = opened(write_cache_bytes=16 * MIB)
    stored = {}
    for at, count in enumerate((700, 30, 600, 500, 1, 1, 1, 1, 1, 1, 1, 1, 1, 700, 20, 200, 200, 200)):
        stored[at] = add(one, at, range(count), size=10_000)
        one.checkpoint()
        assert 0 < one.storage.stats()["kept_bytes"] <= 8 * MIB + 64 * KIB
    for ledger, entries in stored.items():
        assert [data for first in range(0, len(entries), 50) for data in read(one, ledger, first, 50)] == entries


WITHOUT_ADDRESS_SPACE = """
import resource, sys, threading
from pathlib import Path
from bookie._fast.cache.memory import Memory
from bookie._fast.store.direct import Refused
from tests.reference.storage import entry
from tests.storage.opened import MIB, Opened

one = Opened(Path(sys.argv[1]), keep_flushed=True)
stored = {}

def limit_to(share):
    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (int(mapped * share), resource.RLIM_INFINITY))

def no_limit():
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

def add(ledger, count):
    for at in range(count):
        data = entry(ledger, at, payload=bytes([ledger]) * 10_000)
        one.direct.add(data, recovery=True)
        stored[ledger, at] = data
        assert one.direct.commit()

def room(ledger):
    try:
        add(ledger, 1000)
    except Refused:
        return sum(1 for of, _ in stored if of == ledger)

def switches():
    try:
        text = Path(f"/proc/self/task/{flusher.native_id}/status").read_text()
    except OSError:                                     # it has ended
        return 0
    return int(text.partition("\\nvoluntary_ctxt_switches:")[2].split()[0])

memory = Memory(2 * MIB, 2 * MIB)
memory.write(0, 0, bytes(MIB))
limit_to(0.5)
system_loses_it = not memory.pass_on(0, 0)
no_limit()

# The last half took little of the memory that it got from the first one, and leaves the rest for the next one.
for ledger, count in enumerate((120, 90, 3)):
    add(ledger, count)
    one.checkpoint()
add(3, 3)
go = threading.Event()
flusher = threading.Thread(target=lambda: go.wait() and one.checkpoint())
flusher.start()
before = switches()
limit_to(0.5)
go.set()
while flusher.is_alive() and switches() < before + 200:  # it waits again and again
    pass
waits = flusher.is_alive()
no_limit()
flusher.join()
assert waits == system_loses_it, (waits, system_loses_it)
new = room(4)
one.checkpoint()
one.checkpoint()
assert new == room(5), "the half that was mapped again is smaller than another one"
one.checkpoint()
for (ledger, at), data in stored.items():
    held = one.direct.read(ledger, at, size=MIB)
    assert held.entries() == [data], (ledger, at)
    held.release()
one.stop()
"""


@pytest.mark.skipif("san.so" in os.environ.get("LD_PRELOAD", ""), reason="a sanitizer needs address space of its own")
def test_a_half_that_loses_its_address_space_is_mapped_again(tmp_path: Path) -> None:
    """A part of it is lost where the system refuses to move memory into it. The flush waits until there is address
    space for a whole half; no entry is lost, and the half takes as much as another one.
    """
    words = [sys.executable, "-c", WITHOUT_ADDRESS_SPACE, str(tmp_path)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
