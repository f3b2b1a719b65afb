"""Test planned faults (`testing.faulty`), and how the entry log and the readers handle them (B2, B6).

This needs the modules for tests: `BOOKIE_FAULTS=1 make build`.
"""

import errno
import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate
from pathlib import Path

import pytest

from bookie._fast.entrylog.reader import EntryLogReader
from bookie._fast.entrylog.scan import scan_chunk
from bookie._fast.entrylog.writer import EntryLog
from bookie._fast.journal.reader import scan_journal
from tests.reference import entry_log as model
from tests.reference import journal as journal_model

faulty = pytest.importorskip("bookie._fast.testing.faulty", reason="build with BOOKIE_FAULTS=1")

Place = tuple[int, int]

# The last run needs several writes.
SIZES = [200, 400, 600, 800, 1000, 1200, 3 << 18]
RUNS = [
    (ledger, [model.entry(ledger, entry, random.Random(ledger).randbytes(size)) for entry in range(3)])
    for ledger, size in enumerate(SIZES, 1)
]
LIMIT = 4096
RUN_BYTES = [sum(len(entry) + 4 for entry in entries) for _, entries in RUNS]


@pytest.fixture(autouse=True)
def no_plan() -> Iterator[None]:
    """Clear the rules and the trace, which are global, before and after each test."""
    faulty.clear()
    yield
    faulty.clear()


def write_all(directory: Path) -> tuple[dict[int, Place], int | None]:
    """Append RUNS with a sync after every second one, and close; return the places that were synced, and the errno."""
    log = EntryLog(directory, 0, LIMIT, faulty.FaultyFiles())
    covered: dict[int, Place] = {}
    pending: dict[int, Place] = {}
    try:
        for ledger, entries in RUNS:
            pending[ledger] = log.append(ledger, entries)
            if ledger % 2 == 0:
                log.sync()
                covered |= pending
        log.rotate()
        return covered | pending, None
    except OSError as error:
        with pytest.raises(OSError, match=error.strerror):
            log.append(1, RUNS[0][1])
        with pytest.raises(OSError, match=error.strerror):
            log.sync()
        return covered, error.errno
    finally:
        del log


def check_places(directory: Path, places: dict[int, Place]) -> None:
    """Check that each of these places holds its run, and that no log is torn."""
    reader = EntryLogReader(directory)
    for ledger, (log_id, offset) in places.items():
        expected = b"".join(map(model.record, dict(RUNS)[ledger]))
        assert reader.read(log_id, offset, len(expected)) == expected
    assert not any(scan_chunk(path).torn for path in directory.glob("*.log"))


def calls_of(op: str, tmp_path: Path) -> int:
    """Return the number of calls of `op` in a run without faults."""
    (tmp_path / "dry").mkdir()
    assert write_all(tmp_path / "dry")[1] is None
    count = [str(call.op) for call in faulty.trace()].count(op)
    faulty.clear()
    return count


@pytest.mark.thorough
@pytest.mark.parametrize("op", ["open", "pwritev", "fdatasync", "fallocate", "rename"])
@pytest.mark.parametrize(("action", "code"), [("EIO", errno.EIO), ("ENOSPC", errno.ENOSPC)])
def test_after_any_failure_the_writer_is_poisoned(tmp_path: Path, op: str, action: str, code: int) -> None:
    """B2, B6: whichever call fails, later calls fail with its error, and everything synced before is there."""
    calls = calls_of(op, tmp_path)
    assert calls > 0
    for nth in range(1, calls + 1):
        directory = tmp_path / f"{nth}"
        directory.mkdir()
        rule = faulty.plan(op, action, nth=nth)
        places, error = write_all(directory)
        assert faulty.hits(rule) == 1
        if op == "fallocate" and action == "ENOSPC" and error is None:
            assert len(places) == len(RUNS)  # a smaller reservation was enough
        else:
            assert error == code
        check_places(directory, places)
        faulty.clear()


def test_a_nearly_full_disk_gives_what_is_needed(tmp_path: Path) -> None:
    """If the step of reserved blocks does not fit, only the run's are reserved, before the disk counts as full."""
    faulty.plan("fallocate", "ENOSPC", nth=1, times=1)
    log = EntryLog(tmp_path, 0, 1 << 20, faulty.FaultyFiles())
    log.append(*RUNS[0])
    faulty.plan("fallocate", "ENOSPC", times=-1)
    with pytest.raises(OSError, match="No space"):
        log.append(2, [bytes(20), bytes(2 << 20)])


def check_whole(directory: Path) -> None:
    """Check that the logs of a run without errors hold all runs and their maps."""
    places, error = write_all(directory)
    assert error is None
    assert sorted(places) == [ledger for ledger, _ in RUNS]
    check_places(directory, places)
    assert all(model.read_map(path.read_bytes()) for path in directory.glob("*.log"))


@pytest.mark.thorough
@pytest.mark.parametrize("transferred", [-1, 100, 4095, 4096, 5000])
def test_short_writes_are_continued(tmp_path: Path, transferred: int) -> None:
    """Writes that stop early, at the end of a block or within one, are continued without an error."""
    rule = faulty.plan("pwritev", "SHORT", times=-1, transferred=transferred)
    check_whole(tmp_path)
    assert faulty.hits(rule) > len(RUNS)


def test_a_write_of_nothing_is_an_error(tmp_path: Path) -> None:
    """A write that transfers nothing fails with EIO instead of being repeated for ever."""
    faulty.plan("pwritev", "SHORT", transferred=0)
    assert write_all(tmp_path)[1] == errno.EIO


@pytest.mark.parametrize("nth", [1, 3, 5])
def test_a_disk_with_larger_blocks(tmp_path: Path, nth: int) -> None:
    """A direct write that the device refuses goes through the page cache, be it of the header or later."""
    rule = faulty.plan("pwritev", "EINVAL", nth=nth, suffix=".log")
    check_whole(tmp_path)
    assert faulty.hits(rule) == 1


def test_a_refusal_that_lasts_is_an_error(tmp_path: Path) -> None:
    """A descriptor takes EINVAL for a matter of block size only once, and fails after that."""
    rule = faulty.plan("pwritev", "EINVAL", times=-1, suffix=".log")
    assert write_all(tmp_path)[1] == errno.EIO
    assert faulty.hits(rule) <= 2


@pytest.mark.parametrize(("transferred", "records", "torn"), [(1700, 4, False), (3000, 7, False), (4126, 7, True)])
def test_a_torn_write_behind_a_sync(tmp_path: Path, transferred: int, records: int, torn: bool) -> None:
    """B6: wherever the error stops a write, synced records are whole, and others are removed with the writer."""
    log = EntryLog(tmp_path, 0, 1 << 20, faulty.FaultyFiles())
    first = log.append(*RUNS[0])
    log.sync()
    second = log.append(*RUNS[1])
    log.append(*RUNS[2])
    faulty.plan("pwritev", "EIO", transferred=transferred)
    with pytest.raises(OSError, match="error"):
        log.sync()
    with pytest.raises(OSError, match="error"):
        log.rotate()
    chunk = scan_chunk(tmp_path / "0.log")
    assert second[1] == 1024 + RUN_BYTES[0]
    assert (len(chunk.ledger), chunk.torn) == (records, torn)
    assert chunk.ledger[:3].tolist() == [1, 1, 1]
    del log
    chunk = scan_chunk(tmp_path / "0.log")
    assert (chunk.ledger.tolist(), chunk.end, chunk.torn) == ([1, 1, 1], second[1], False)
    check_places(tmp_path, {1: first})


@pytest.mark.parametrize("op", ["pwritev", "fdatasync", "fallocate"])
def test_after_a_full_disk_a_new_log_begins(tmp_path: Path, op: str) -> None:
    """A log on a full disk ends without a map at its last sync, and what was not committed goes into the next log."""
    log = EntryLog(tmp_path, 0, 4 << 20, faulty.FaultyFiles())
    first = log.append(*RUNS[0])
    log.sync()
    faulty.plan(op, "ENOSPC", times=2 if op == "fallocate" else 1, transferred=3000)
    if op == "fallocate":  # the first reservation is for the whole log
        log.rotate()
    with pytest.raises(OSError, match="No space"):  # noqa: PT012
        log.append(*RUNS[1])
        log.sync()
    with pytest.raises(OSError, match="No space"):
        log.append(*RUNS[2])
    log.rotate()
    second = log.append(*RUNS[1])
    log.sync()
    assert first == (0, 1024)
    assert second[0] > 0
    check_places(tmp_path, {1: first, 2: second})
    chunk = scan_chunk(tmp_path / "0.log")
    assert (chunk.ledger.tolist(), chunk.torn) == ([1, 1, 1], False)
    assert sorted(path.name for path in tmp_path.glob("*.log")) == ["0.log", f"{second[0]:x}.log"]


@pytest.mark.parametrize("nth", [1, 2])
def test_a_disk_that_is_full_at_the_end_of_a_log(tmp_path: Path, nth: int) -> None:
    """If the map, or the sync of the header that points to it, finds no space, the log ends without a map."""
    log = EntryLog(tmp_path, 0, LIMIT, faulty.FaultyFiles())
    first = log.append(*RUNS[0])
    second = log.append(*RUNS[1])
    log.sync()
    rule = faulty.plan("fdatasync", "ENOSPC", nth=nth, suffix="0.log")
    with pytest.raises(OSError, match="No space"):
        log.append(*RUNS[3])
    assert faulty.hits(rule) == 1
    log.rotate()
    third = log.append(*RUNS[3])
    log.sync()
    assert third == (1, 1024)
    check_places(tmp_path, {1: first, 2: second, 4: third})
    header = (tmp_path / "0.log").read_bytes()[:20]
    named = (model.read_map((tmp_path / "0.log").read_bytes()) or {}) == {1: RUN_BYTES[0], 2: RUN_BYTES[1]}
    assert named == (nth == 2)
    assert named or header[8:] == bytes(12)


def test_a_disk_that_stays_full_leaves_no_empty_logs(tmp_path: Path) -> None:
    """A log of which nothing was ever synced is removed when it is given up."""
    log = EntryLog(tmp_path, 0, LIMIT, faulty.FaultyFiles())
    faulty.plan("fdatasync", "ENOSPC", suffix=".log", times=3)
    for _ in range(3):
        with pytest.raises(OSError, match="No space"):  # noqa: PT012
            log.append(*RUNS[0])
            log.sync()
        log.rotate()
    assert [path.name for path in tmp_path.iterdir()] == ["lastId"]


def test_a_log_that_could_not_begin_leaves_no_file(tmp_path: Path) -> None:
    """Retries on a full disk leave no empty logs."""
    log = EntryLog(tmp_path, 0, LIMIT, faulty.FaultyFiles())
    faulty.plan("pwritev", "ENOSPC", suffix=".log", times=3)
    for _ in range(3):
        with pytest.raises(OSError, match="No space"):
            log.append(*RUNS[0])
        log.rotate()
    assert list(tmp_path.iterdir()) == []
    assert log.append(*RUNS[0])[0] == 3


def test_the_order_of_closing(tmp_path: Path) -> None:
    """The map is synced before the header points to it, and name and `lastId` before a position is returned."""
    assert write_all(tmp_path)[1] is None
    calls = [call for call in faulty.trace() if call.path.endswith("/0.log")]
    header = next(i for i, call in enumerate(calls) if call.op == "pwritev" and call.offset == 8)
    assert [call.op for call in calls[header - 2 :]] == ["pwritev", "fdatasync", "pwritev", "fdatasync", "close"]
    assert calls[header - 2].offset + calls[header - 2].size >= (tmp_path / "0.log").stat().st_size
    begin = [(call.op, call.path.rsplit("/", 1)[1]) for call in faulty.trace()][:10]
    assert begin[:6] == [
        ("open", "0.log"), ("pwritev", "0.log"), ("open", "lastId.tmp"), ("pwritev", "lastId.tmp"),
        ("fdatasync", "lastId.tmp"), ("close", "lastId.tmp"),
    ]  # fmt: skip
    assert begin[6] == ("rename", "lastId")
    assert [op for op, _ in begin[7:10]] == ["open", "fdatasync", "close"]


def test_failed_reads_are_errors(tmp_path: Path) -> None:
    """EIO during a scan or a read is never taken for the end of the file, and a short pread is continued."""
    places, _ = write_all(tmp_path)
    (tmp_path / "1.txn").write_bytes(journal_model.build([journal_model.record(1, 1)], 1))
    faulty.plan("pread", "SHORT", times=-1)
    files = faulty.FaultyFiles()
    reader = EntryLogReader(tmp_path, 4, files)
    log_id, offset = places[1]
    assert len(reader.read(log_id, offset, 100)) == 100
    assert len(scan_chunk(tmp_path / "0.log", files=files).ledger) > 0
    assert scan_journal(tmp_path / "1.txn", 1, files=files).records == 1
    faulty.clear()
    for nth in (1, 2):
        faulty.plan("pread", "EIO", nth=nth, times=-1)
        with pytest.raises(OSError, match="error"):
            scan_chunk(tmp_path / "0.log", files=files)
        with pytest.raises(OSError, match="error"):
            scan_journal(tmp_path / "1.txn", 1, files=files)
        with pytest.raises(OSError, match="error"):
            reader.read(log_id, offset, 1 << 20)
        faulty.clear()


def test_a_log_is_not_evicted_under_a_read(tmp_path: Path) -> None:
    """A stalled read gets its own bytes, although its log is deleted and forgotten and its slot is needed."""
    for log_id in (1, 2):
        (tmp_path / f"{log_id}.log").write_bytes(bytes([log_id]) * 100)
    reader = EntryLogReader(tmp_path, 1, faulty.FaultyFiles())
    rule = faulty.plan("pread", "STALL", suffix="1.log")
    answers: dict[int, bytes] = {}
    threads = [threading.Thread(target=lambda n=n: answers.update({n: reader.read(n, 0, 4)})) for n in (1, 2)]
    threads[0].start()
    assert faulty.wait_hit(rule, 10)
    (tmp_path / "1.log").unlink()
    reader.forget(1)
    threads[1].start()
    assert answers == {}
    faulty.release()
    for thread in threads:
        thread.join(60)
    assert answers == {1: b"\x01" * 4, 2: b"\x02" * 4}


def test_descriptors_never_exceed_their_bound(tmp_path: Path) -> None:
    """B19: with eight threads, sixteen logs and forgotten logs, never more than three descriptors are open."""
    for log_id in range(16):
        (tmp_path / f"{log_id:x}.log").write_bytes(bytes([log_id]) * 64)
    reader = EntryLogReader(tmp_path, 3, faulty.FaultyFiles())

    def work(seed: int) -> None:
        seeded_random = random.Random(seed)
        for _ in range(300):
            log_id = seeded_random.randrange(16)
            assert reader.read(log_id, 8, 8) == bytes([log_id]) * 8
            reader.forget(seeded_random.randrange(16))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    calls = [call.op for call in faulty.trace() if call.op in {"open", "close"}]
    balance = list(accumulate(1 if op == "open" else -1 for op in calls))
    assert len(calls) > 100
    assert max(balance) <= 3


KILLED = """
import sys
from bookie._fast.testing import faulty as _faulty
from bookie._fast.entrylog.writer import EntryLog
log = EntryLog(sys.argv[1], 0, 1 << 20, _faulty.FaultyFiles())
_faulty.plan(sys.argv[2], "KILL", nth=int(sys.argv[3]), suffix="0.log", transferred=int(sys.argv[4]))
for entry in range(5):
    log.append(1, [bytes(7) + b"\\1" + bytes(7) + bytes([entry]) + b"x" * 2980])
    if entry < 2:
        log.sync()
log.rotate()
sys.exit("still alive")
"""


@pytest.mark.parametrize(
    ("op", "nth", "transferred", "records", "torn"),
    [
        ("pwritev", 1, 30, 0, False),
        ("pwritev", 2, 4000, 1, False),
        ("pwritev", 3, 5000, 1, True),
        ("pwritev", 3, 8192, 2, False),
        ("pwritev", 4, 5000, 2, True),
        ("pwritev", 4, 9000, 4, True),
        ("pwritev", 4, 11948, 5, True),
        ("pwritev", 5, 7, 5, False),
        ("fdatasync", 1, 0, 1, False),
        ("fdatasync", 3, 0, 5, False),
        ("fdatasync", 4, 0, 5, False),
    ],
)
def test_kill(tmp_path: Path, op: str, nth: int, transferred: int, records: int, torn: bool) -> None:
    """After SIGKILL in the header, a record, the map, the closing words or at a sync, the log can be scanned."""
    arguments = [str(tmp_path), op, str(nth), str(transferred)]
    killed = subprocess.run([sys.executable, "-c", KILLED, *arguments], check=False, timeout=60)
    assert killed.returncode == -9
    chunk = scan_chunk(tmp_path / "0.log")
    assert (len(chunk.ledger), chunk.torn) == (records, torn)
    synced = max(nth - 2, 0) if op == "pwritev" else nth - 1
    assert chunk.entry[: min(synced, 2)].tolist() == list(range(min(synced, 2)))


def test_plans_are_checked() -> None:
    """A rule that could never act is refused, and the error tells which values would."""
    with pytest.raises(ValueError, match="op 'write' must be one of"):
        faulty.plan("write", "EIO")
    with pytest.raises(ValueError, match="action 'EPERM' one of"):
        faulty.plan("open", "EPERM")
    with pytest.raises(ValueError, match="SHORT needs op pread or pwritev"):
        faulty.plan("open", "SHORT")
    with pytest.raises(ValueError, match="there is no rule 0"):
        faulty.hits(0)
