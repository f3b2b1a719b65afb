"""Storage with an entry log per ledger while ledgers come and go: file descriptors and open logs stay bounded."""

from pathlib import Path
from types import ModuleType

import pytest

from bookie._fast.entrylog.scan import scan_entry_log
from tests.reference.storage import entry
from tests.storage.opened import Opened

KEY = b"k" * 20


def open_logs(directory: Path) -> int:
    """Return the entry logs of the directory that this process has open for writing."""
    found = 0
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            flags = (Path("/proc/self/fdinfo") / descriptor.name).read_text().split("flags:")[1].split()[0]
            path = descriptor.readlink()
        except FileNotFoundError:
            continue
        found += path.parent == directory and path.suffix == ".log" and int(flags, 8) & 1
    return found


@pytest.mark.parametrize("fenced", [True, False])
def test_open_logs_stay_bounded_while_ledgers_come_and_go(tmp_path: Path, fenced: bool) -> None:
    """Write 200 ledgers, 10 between two checkpoints, with 4 logs at a time. A fence closes a log as a write close
    does; otherwise the limit and the idle time do. Each log holds one ledger, and everything is read back after the
    next start.
    """
    one = Opened(tmp_path, log_per_ledger=True, ledger_logs_max=4)
    [directory] = [path / "current" for path in one.ledger_dirs]
    stats = one.storage.stats()
    for ledger in range(200):
        for at in range(3):
            one.direct.add(entry(ledger, at, payload=bytes(2000)), KEY)
        if fenced:
            one.direct.fence(ledger, KEY)
        if ledger % 10 == 9:
            assert one.direct.commit()
            one.checkpoint()
            stats = one.storage.stats()
            assert open_logs(directory) == stats["ledger_logs_active"] == stats["entry_logs_open"]
            assert stats["ledger_logs_active"] == (0 if fenced else 4)
            assert stats["entry_logs_behind"] <= 4
    assert (stats["ledger_logs_write_closed"], stats["ledger_logs_displaced"]) == ((200, 0) if fenced else (0, 196))
    one.stop()
    logs = [list(scan_entry_log(path)) for path in directory.glob("*.log")]
    held_by = [{int(ledger) for chunk in chunks for ledger in chunk.ledger} for chunks in logs]
    assert sorted(map(tuple, held_by)) == [(ledger,) for ledger in range(200)]
    again = Opened(tmp_path)
    for ledger in range(200):
        held = again.direct.read(ledger, 0, count=10, size=1 << 20)
        assert held.entries() == [entry(ledger, at, payload=bytes(2000)) for at in range(3)]
        held.release()
    again.stop()


def test_a_deleted_ledger_goes_with_its_files(tmp_path: Path) -> None:
    """The next checkpoint closes the open log of a deleted ledger before its idle time is over. Collection then
    removes complete files and copies nothing, and the other ledger is unchanged.
    """
    one = Opened(tmp_path, log_per_ledger=True, ledger_logs_max=10)
    [directory] = [path / "current" for path in one.ledger_dirs]
    for at in range(2):
        for ledger in (1, 2):
            one.direct.add(entry(ledger, at, payload=bytes(2000)), KEY)
        assert one.direct.commit()
        one.checkpoint()
    assert open_logs(directory) == 2
    [collector] = one.storage.collectors()
    assert collector.delete_ledgers([1]) == 1
    one.checkpoint()
    assert open_logs(directory) == one.storage.stats()["ledger_logs_active"] == 1
    closed = collector.closed_logs().ids.tolist()
    assert len(closed) == 1
    assert closed[0] not in collector.live_bytes().ids.tolist()
    gone = collector.unlink_log(closed[0])
    assert (gone.outcome, gone.moved_bytes) == ("unlinked", 0)
    assert len(list(directory.glob("*.log"))) == 1
    held = one.direct.read(2, 0, count=10, size=1 << 20)
    assert held.entries() == [entry(2, at, payload=bytes(2000)) for at in range(2)]
    held.release()
    one.stop()


@pytest.mark.parametrize("flushed", [False, True], ids=["new log", "open log"])
@pytest.mark.parametrize(("call", "suffix"), [("pwritev", ".log"), ("open", ".log"), ("pwritev", "lastId.tmp")])
def test_an_announced_end_outlasts_a_full_disk(
    tmp_path: Path, faulty: ModuleType, call: str, suffix: str, *, flushed: bool
) -> None:
    """A checkpoint that finds no space keeps the announcement, and the first one that finds some closes the log, which
    is counted once.
    """
    one = Opened(tmp_path, files=faulty.FaultyFiles(), log_per_ledger=True, ledger_logs_max=10)
    [directory] = [path / "current" for path in one.ledger_dirs]
    entries = [entry(1, at, payload=bytes(2000)) for at in range(6)]
    for data in entries[:3] if flushed else ():
        one.direct.add(data, KEY)
    if flushed:
        assert one.direct.commit()
        one.checkpoint()
    for data in entries[3:] if flushed else entries:
        one.direct.add(data, KEY)
    one.direct.add(entry(2, 0, payload=bytes(2000)), KEY)
    one.direct.write_close(1, KEY)
    assert one.direct.commit()
    faulty.plan(call, "ENOSPC", times=-1, suffix=suffix)
    for _ in range(2):
        with pytest.raises(OSError, match="no space left"):
            one.checkpoint()
    faulty.clear()
    one.checkpoint()
    assert open_logs(directory) == one.storage.stats()["ledger_logs_active"] == 1
    assert one.storage.stats()["ledger_logs_write_closed"] == 1
    [collector] = one.storage.collectors()
    assert collector.closed_logs().ids.size == 1 + flushed  # what the failed flushes appended went to another log
    held = one.direct.read(1, 0, count=10, size=1 << 20)
    assert held.entries() == entries
    held.release()
    one.stop()


def test_a_write_close_after_a_crash_closes_what_replay_wrote(tmp_path: Path) -> None:
    """The log that was open at the crash takes no more entries; replayed entries go to a new one, which a write close
    closes. A write close from before the crash is forgotten: it is advisory, and can be sent again.
    """
    one = Opened(tmp_path, log_per_ledger=True, ledger_logs_max=10)
    [directory] = [path / "current" for path in one.ledger_dirs]
    entries = [entry(1, at, payload=bytes(2000)) for at in range(6)]
    for data in entries[:3]:
        one.direct.add(data, KEY)
    assert one.direct.commit()
    one.checkpoint()
    for data in entries[3:]:
        one.direct.add(data, KEY)
    one.direct.write_close(1, KEY)
    assert one.direct.commit()
    one.crash()
    again = Opened(tmp_path, log_per_ledger=True, ledger_logs_max=10)
    again.checkpoint()
    assert (again.storage.stats()["ledger_logs_active"], again.storage.stats()["ledger_logs_write_closed"]) == (1, 0)
    assert open_logs(directory) == 1
    for _ in range(2):
        again.direct.write_close(1, KEY)
        assert again.direct.commit()
        again.checkpoint()
        stats = again.storage.stats()
        assert (stats["ledger_logs_active"], stats["ledger_logs_write_closed"]) == (0, 1)
    assert open_logs(directory) == again.storage.stats()["entry_logs_open"] == 0
    [collector] = again.storage.collectors()
    assert collector.closed_logs().ids.size == len(list(directory.glob("*.log"))) == 2
    held = again.direct.read(1, 0, count=10, size=1 << 20)
    assert held.entries() == entries
    held.release()
    again.stop()
