"""Flushes of several directories at the same time, and beside a replay (store.flush, store.flushers, store.flush_job).

Flushes are held by planned faults of the disk, never by time (B4, B5, B15, B18).
"""

import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from bookie.errors import StartRefused
from bookie.storage.layout import next_log_id
from tests.reference.storage import entry
from tests.storage.opened import MIB, Opened

ROOT = Path(__file__).resolve().parents[2]
SIZE = 10_000
PATIENCE_S = 60
PRELUDE = "from pathlib import Path\nfrom tests.storage import test_flushes_beside as test\n"


def stored(ledger: int, at: int) -> bytes:
    """Return an entry that shows which one it is."""
    return entry(ledger, at, payload=bytes([ledger, at % 251]) * (SIZE // 2))


def add(one: Opened, counts: dict[int, int]) -> None:
    """Add that many entries to each ledger, in turn, and commit them."""
    for at in range(max(counts.values())):
        for ledger in (ledger for ledger, count in counts.items() if at < count):
            one.direct.add(stored(ledger, at))
        if at % 20 == 0:
            assert one.direct.commit()
    assert one.direct.commit()


def check(one: Opened, counts: dict[int, int]) -> None:
    """Check that all entries are there, and no others."""
    for ledger, count in counts.items():
        for at in range(count + 1):
            held = one.direct.read(ledger, at)
            expected = ("OK", [stored(ledger, at)]) if at < count else ("NO_ENTRY", [])
            assert (held.status, held.entries()) == expected, (ledger, at)
            held.release()


def journaled(root: Path, directories: int, counts: dict[int, int]) -> None:
    """Leave entries that are in the journal only."""
    one = Opened(root, ledger_dirs=directories, write_cache_bytes=64 * MIB)
    add(one, counts)
    one.crash()


def until(holds: Callable[[], bool]) -> None:
    """Wait until another thread has made it so."""
    pause = threading.Event()
    for _ in range(PATIENCE_S * 100):
        if holds():
            return
        pause.wait(0.01)
    pytest.fail("it never came")


def ends(code: str) -> subprocess.CompletedProcess[str]:
    """Run a process to its end."""
    command = [sys.executable, "-c", PRELUDE + code]
    return subprocess.run(command, cwd=ROOT, check=False, timeout=120, capture_output=True, text=True)


def next_log(root: Path, at: int) -> str:
    """Return the end of the path of the next entry log of a directory."""
    current = root / f"ledgers-{at}" / "current"
    return f"{current.parent.name}/current/{next_log_id(current):x}.log"


def test_all_directories_are_flushed_at_the_same_time(tmp_path: Path, faulty: ModuleType) -> None:
    """B4: the flush of each is held in its sync, and all get there. Then every mark moves."""
    counts = dict.fromkeys(range(4), 5)
    one = Opened(tmp_path, ledger_dirs=4, files=faulty.FaultyFiles())
    add(one, counts)
    rules = [faulty.plan("fdatasync", "STALL", suffix=next_log(tmp_path, at)) for at in range(4)]
    flush = threading.Thread(target=one.checkpoint)
    flush.start()
    try:
        assert all(faulty.wait_hit(rule, PATIENCE_S) for rule in rules)
        check(one, counts)
    finally:
        faulty.clear()
        faulty.release()
        flush.join()
    one.crash()
    one = Opened(tmp_path, ledger_dirs=4)
    assert one.report.entries == 0
    check(one, counts)
    one.stop()


def test_b15_a_stalled_and_a_full_directory_keep_no_other_one_back(tmp_path: Path, faulty: ModuleType) -> None:
    """While one directory stalls, another one is known to be full, and the mark of a third moves. The failed flush is
    not forgotten: the next checkpoint repeats it.
    """
    counts = dict.fromkeys(range(3), 5)
    one = Opened(tmp_path, ledger_dirs=3, files=faulty.FaultyFiles())
    mark = tmp_path / "ledgers-2" / "current" / "lastMark"
    before = mark.read_bytes()
    add(one, counts)
    stall = faulty.plan("fdatasync", "STALL", suffix=next_log(tmp_path, 0))
    faulty.plan("open", "ENOSPC", suffix="ledgers-1/current/lastId.tmp")
    failed: list[OSError] = []

    def flush() -> None:
        try:
            one.checkpoint()
        except OSError as error:
            failed.append(error)

    flushing = threading.Thread(target=flush)
    flushing.start()
    try:
        assert faulty.wait_hit(stall, PATIENCE_S)
        until(lambda: mark.read_bytes() != before)
        until(lambda: one.storage.full_directories() == {tmp_path / "ledgers-1"})
        assert not failed
        check(one, counts)
    finally:
        faulty.release()
        flushing.join()
    assert "no space left" in str(failed)
    one.checkpoint()
    assert not one.storage.full_directories()
    one.crash()
    one = Opened(tmp_path, ledger_dirs=3)
    assert one.report.entries == 0
    check(one, counts)
    one.stop()


def test_a_replay_goes_on_while_a_half_is_flushed(tmp_path: Path, faulty: ModuleType) -> None:
    """B5: with the flush of the first half held, the replay fills the other half, and comes to the journal's end."""
    counts = {0: 150}
    journaled(tmp_path, 1, counts)
    stall = faulty.plan("fdatasync", "STALL", suffix=next_log(tmp_path, 0))
    replayed = threading.Event()
    opened: list[Opened] = []

    def progress(done: int, total: int) -> None:
        if done == total:
            replayed.set()

    def start() -> None:
        opened.append(Opened(tmp_path, files=faulty.FaultyFiles(), progress=progress))

    starting = threading.Thread(target=start)
    starting.start()
    try:
        assert faulty.wait_hit(stall, PATIENCE_S)
        assert replayed.wait(PATIENCE_S)
        assert starting.is_alive()
    finally:
        faulty.release()
        starting.join()
    [one] = opened
    assert one.report.entries == 150
    check(one, counts)
    one.crash()
    one = Opened(tmp_path)
    assert one.report.entries == 0
    check(one, counts)
    one.stop()


UNEVEN = {0: 500, 1: 150, 2: 500}
"""Directory 0 gets more than both halves hold, directory 1 more than one half; directory 2 is flushed several times."""
UNEVEN_CACHE = 12 * MIB


def dies_in_a_replay(root: Path) -> None:
    """Replay with directory 0 full and directory 1 stalled, and kill the process at the end of the journal."""
    import os

    from bookie._fast.testing import faulty

    faulty.plan("open", "ENOSPC", times=-1, suffix="ledgers-0/current/lastId.tmp")
    stall = faulty.plan("fdatasync", "STALL", suffix=next_log(root, 1))
    flushed = faulty.plan("pwritev", "SHORT", suffix=next_log(root, 2))

    def progress(done: int, total: int) -> None:
        if done == total and faulty.wait_hit(stall, PATIENCE_S) and faulty.wait_hit(flushed, PATIENCE_S):
            os.kill(os.getpid(), signal.SIGKILL)

    Opened(root, ledger_dirs=3, files=faulty.FaultyFiles(), write_cache_bytes=UNEVEN_CACHE, progress=progress)


@pytest.mark.usefixtures("faulty")
def test_b5_b15_a_kill_in_a_replay_beside_a_full_and_a_stalled_directory(tmp_path: Path) -> None:
    """The replay comes to the journal's end all the same. After two such kills everything acknowledged is there."""
    journaled(tmp_path, 3, UNEVEN)
    for _ in range(2):
        child = ends(f"test.dies_in_a_replay(Path({str(tmp_path)!r}))")
        assert child.returncode == -signal.SIGKILL, child.stderr
    one = Opened(tmp_path, ledger_dirs=3, write_cache_bytes=UNEVEN_CACHE)
    assert one.report.entries == sum(UNEVEN.values())
    check(one, UNEVEN)
    one.crash()
    one = Opened(tmp_path, ledger_dirs=3)
    assert one.report.entries == 0
    check(one, UNEVEN)
    one.stop()


def test_b15_a_flush_that_failed_beside_a_replay_is_repeated(tmp_path: Path, faulty: ModuleType) -> None:
    """One write without space in each directory: the replay repeats the flushes, and the start is an ordinary one."""
    counts = {0: 300, 1: 300}
    journaled(tmp_path, 2, counts)
    rules = [faulty.plan("open", "ENOSPC", suffix=f"ledgers-{at}/current/lastId.tmp") for at in range(2)]
    one = Opened(tmp_path, ledger_dirs=2, files=faulty.FaultyFiles())
    assert [faulty.hits(rule) for rule in rules] == [1, 1]
    assert not one.storage.full_directories()
    check(one, counts)
    one.crash()
    one = Opened(tmp_path, ledger_dirs=2)
    assert one.report.entries == 0
    check(one, counts)
    one.stop()


def fails_in_a_replay(root: Path) -> None:
    """Replay with a disk that fails a sync of the flush beside it, and print how the start ends."""
    from bookie._fast.base import fatal
    from bookie._fast.testing import faulty

    faulty.plan("fdatasync", "EIO", suffix=next_log(root, 1))
    try:
        Opened(root, ledger_dirs=2, files=faulty.FaultyFiles())
    except OSError as error:
        print(error, fatal.wait(0) is not None, [one.name for one in threading.enumerate() if "flush" in one.name])


@pytest.mark.usefixtures("faulty")
def test_b18_a_failed_sync_beside_a_replay_ends_the_start(tmp_path: Path) -> None:
    """The failure is fatal and not retried, the threads of the start end, and the next start has everything."""
    counts = {0: 300, 1: 300}
    journaled(tmp_path, 2, counts)
    child = ends(f"test.fails_in_a_replay(Path({str(tmp_path)!r}))")
    assert "[Errno 5] cannot" in child.stdout, child.stderr
    assert child.stdout.endswith("True []\n")
    one = Opened(tmp_path, ledger_dirs=2)
    check(one, counts)
    one.stop()


def test_a_refused_start_ends_its_threads(tmp_path: Path) -> None:
    """A start that an operator must mend leaves no thread behind."""
    journaled(tmp_path, 2, {0: 300, 1: 300})
    [first, *_] = sorted((tmp_path / "journal-0" / "current").glob("*.txn"))
    data = bytearray(first.read_bytes())
    data[len(data) // 2] ^= 1
    first.write_bytes(data)
    with pytest.raises(StartRefused, match="is damaged at offset"):
        Opened(tmp_path, ledger_dirs=2)
    assert [one.name for one in threading.enumerate() if one.name.startswith("flush-")] == []
