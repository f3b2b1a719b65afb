"""Test the order of a checkpoint (store.checkpoint, store.last_mark, store.ledger_table, store.stores): kills after
any step, a full disk at any step, and reads during a checkpoint (B4, B6, B8, B10).
"""

import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from tests.reference.storage import Stores, entry, lac_packet
from tests.storage.opened import MIB, Opened, check_index

STEPS = range(1, 9)
KEY = b"k" * 20
ROOT = Path(__file__).resolve().parents[2]


def work(one: Opened, model: Stores, version: bytes) -> None:
    """Write entries, new ones and old ones again, a fence and a LAC, all of them durable."""
    for ledger in range(4):
        for at in (*range(5), 7):
            data = entry(ledger, at, payload=version + bytes(at))
            one.direct.add(data, KEY, recovery=True)
            model.add(data, KEY, recovery=True)
    fenced = len(version) % 4
    one.direct.fence(fenced, KEY)
    model.fence(fenced, KEY)
    one.direct.write_lac(lac_packet(0, len(version)), KEY)
    model.write_lac(lac_packet(0, len(version)), KEY)
    assert one.direct.commit()


def check(one: Opened, model: Stores) -> None:
    """Check that all ledgers and entries are as in the model."""
    for ledger, known in model.ledgers.items():
        state = one.direct.ledger(ledger)
        assert state is not None
        assert (state.key, state.fenced, state.explicit_lac) == (known.key, known.fenced, known.explicit_lac)
        for at in known.entries:
            held = one.direct.read(ledger, at, count=10, size=MIB)
            assert (held.status, held.entries()) == model.read(ledger, at, 10, MIB)
            held.release()


def dies(root: Path, step: int) -> None:
    """Run in the child: write two rounds, and kill the process during the second checkpoint."""
    from bookie._fast.base.crash_steps import crash_after_step

    one, model = Opened(root, ledger_dirs=2, journals=2), Stores()
    work(one, model, b"one")
    one.checkpoint()
    work(one, model, b"second")
    crash_after_step(step)
    one.checkpoint()


@pytest.mark.thorough
@pytest.mark.parametrize("step", STEPS)
def test_a_kill_after_any_step(tmp_path: Path, step: int) -> None:
    """B4, B6, B8, B10: everything that was durable is there after the next start, and the start after that."""
    code = (
        f"from pathlib import Path; from tests.fast.test_checkpoint import dies; dies(Path({str(tmp_path)!r}), {step})"
    )
    child = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False, timeout=120, capture_output=True)
    assert child.returncode == -signal.SIGABRT, child.stderr.decode()
    model = Stores()
    replayed = Opened(tmp_path, ledger_dirs=2, journals=2)
    for ledger in range(4):
        for version in (b"one", b"second"):
            for at in (*range(5), 7):
                model.add(entry(ledger, at, payload=version + bytes(at)), KEY, recovery=True)
    for version in (b"one", b"second"):
        model.fence(len(version) % 4, KEY)
        model.write_lac(lac_packet(0, len(version)), KEY)
    check(replayed, model)
    assert (replayed.report.entries == 0) == (step >= 7)
    replayed.crash()
    again = Opened(tmp_path, ledger_dirs=2, journals=2)
    assert again.report.entries == 0
    check(again, model)
    again.stop()
    check_index(again.ledger_dirs, model)


@pytest.mark.parametrize(
    ("op", "suffix"), [("pwritev", ".log"), ("fdatasync", ".log"), ("pwritev", "lastMark.tmp"), ("rename", "lastMark")]
)
def test_a_full_disk(tmp_path: Path, faulty: ModuleType, op: str, suffix: str) -> None:
    """B4, B6, B8, B10: the checkpoint fails and is tried again, and loses nothing."""
    one, model = Opened(tmp_path, files=faulty.FaultyFiles()), Stores()
    work(one, model, b"one")
    rule = faulty.plan(op, "ENOSPC", times=2, suffix=suffix)
    for _ in range(2):
        with pytest.raises(OSError, match="no space left"):
            one.checkpoint()
        assert one.storage.full_directories() <= set(one.storage.storage.ledger_directories)
        assert one.storage.full_directories()
        check(one, model)
        work(one, model, b"second")
    assert faulty.hits(rule) == 2
    one.checkpoint()
    assert not one.storage.full_directories()
    check(one, model)
    one.crash()
    one = Opened(tmp_path)
    assert one.report.entries == 0
    check(one, model)
    one.stop()
    check_index(one.ledger_dirs, model)


def during_a_flush(faulty: ModuleType, one: Opened, body: Callable[[], None]) -> None:
    """Run `body` while a half is being flushed."""
    rule = faulty.plan("fdatasync", "STALL", suffix=".log")
    flush = threading.Thread(target=one.checkpoint)
    flush.start()
    try:
        assert faulty.wait_hit(rule, 60)
        body()
    finally:
        faulty.release()
        flush.join()


def test_while_a_half_is_flushed(tmp_path: Path, faulty: ModuleType) -> None:
    """B21: the newest copy of an entry is served, be it on disk, in the flushing half or in the active one."""
    one, model = Opened(tmp_path, files=faulty.FaultyFiles()), Stores()
    work(one, model, b"one")
    one.checkpoint()
    check(one, model)
    for at in (1, 3):
        data = entry(2, at, payload=b"flushing")
        model.add(data, KEY, recovery=True)
        one.direct.add(data, KEY, recovery=True)

    def body() -> None:
        check(one, model)
        for at in (3, 4):
            data = entry(2, at, payload=b"active")
            model.add(data, KEY, recovery=True)
            one.direct.add(data, KEY, recovery=True)
        check(one, model)
        one.direct.fence(3, KEY)
        model.fence(3, KEY)

    during_a_flush(faulty, one, body)
    check(one, model)
    one.stop()
    one = Opened(tmp_path)
    check(one, model)
    one.stop()
    check_index(one.ledger_dirs, model)


def stamped(ledger: int, at: int) -> bytes:
    """Return an entry whose bytes show which entry it is."""
    return entry(ledger, at, payload=bytes([ledger, at % 256]) * 200)


def write(one: Opened, ledger: int) -> None:
    """Write 600 entries in order, and wait for every 40th."""
    user = one.user()
    for at in range(600):
        group = user.add(stamped(ledger, at))
        if at % 40 == 0:
            assert user.wait(ledger, group, 60)
    user.close()


def read(one: Opened, ledger: int, done: threading.Event, wrong: list[tuple[int, int, str]]) -> None:
    """Read batches repeatedly until `done`; `wrong` collects reads that returned other bytes than were stored."""
    user, at = one.user(), 0
    while not done.is_set():
        held = user.read(ledger, at, count=20, size=MIB)
        as_stored = held.entries() == [stamped(ledger, at + i) for i in range(held.count)]
        if not as_stored or held.status not in {"OK", "NO_ENTRY", "NO_LEDGER"}:
            wrong.append((ledger, at, held.status))
        at = held.next % 600 if held.status == "OK" else 0
        held.release()
    user.close()


def test_writers_readers_and_checkpoints_at_once(tmp_path: Path) -> None:
    """B21: entries are served as they were stored while halves are flushed, and after a crash."""
    one = Opened(tmp_path, write_cache_bytes=4 * MIB)
    done = threading.Event()
    wrong: list[tuple[int, int, str]] = []

    def flush() -> None:
        while not done.is_set():
            one.checkpoint()

    [committer] = one.storage._journals
    journal = threading.Thread(target=committer.run)
    writers = [threading.Thread(target=write, args=(one, ledger)) for ledger in range(2)]
    others = [threading.Thread(target=read, args=(one, ledger, done, wrong)) for ledger in range(2)]
    others.append(threading.Thread(target=flush))
    for thread in (journal, *others, *writers):
        thread.start()
    for thread in writers:
        thread.join()
    done.set()
    committer.stop()
    for thread in (*others, journal):
        thread.join()
    assert not wrong
    one.crash()
    one = Opened(tmp_path)
    for ledger in range(2):
        held = one.direct.read(ledger, 0, count=600, size=10 * MIB)
        assert held.entries() == [stamped(ledger, at) for at in range(held.count)]
        assert held.count > 100
        held.release()
    one.stop()


def test_b3_the_name_of_a_new_index_lasts(tmp_path: Path, faulty: ModuleType) -> None:
    """B3: LMDB syncs only its file. Without a sync of its directory, a power cut could take the index away."""
    one = Opened(tmp_path, files=faulty.FaultyFiles())
    synced = [call.path for call in faulty.trace() if call.op == "fdatasync"]
    assert any(path.endswith("/current/locations.lmdb") for path in synced)
    one.crash()
    faulty.plan("fdatasync", "EIO", suffix="/current/locations.lmdb")
    with pytest.raises(OSError, match="cannot sync the directory of the location index"):
        Opened(tmp_path, files=faulty.FaultyFiles())
