"""Test the cache of read descriptors: their number is bounded, and none is closed or replaced during a read."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

import pytest

from bookie._fast.entrylog.reader import EntryLogReader


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Write logs 0 to 1f, each with 4,096 bytes that are its own id."""
    for log_id in range(32):
        (tmp_path / f"{log_id:x}.log").write_bytes(bytes([log_id]) * 4096)
    return tmp_path


def open_logs(directory: Path) -> list[str]:
    """Return the logs of `directory` that this process has open."""
    found = []
    for fd in Path("/proc/self/fd").iterdir():
        try:
            target = str(fd.readlink())
        except FileNotFoundError:
            continue
        if target.startswith(str(directory)):
            found.append(Path(target).name)
    return sorted(found)


def test_reads(logs: Path) -> None:
    """Reads inside the file, across its end and beyond it are right, with and without readahead."""
    reader = EntryLogReader(logs)
    assert reader.read(0x1F, 10, 20, ahead=1 << 20) == b"\x1f" * 20
    assert reader.read(0x1F, 4090, 20) == b"\x1f" * 6
    assert reader.read(0x1F, 5000, 20) == b""


@pytest.mark.parametrize("log_id", [0x20, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF])
def test_a_missing_log_is_an_error(logs: Path, log_id: int) -> None:
    """Reading a missing log is an error, since a location without its file is damage."""
    reader = EntryLogReader(logs, 2)
    for _ in range(3):
        with pytest.raises(OSError, match=f"{log_id:x}.log"):
            reader.read(log_id, 0, 1)
    assert reader.read(1, 0, 1) == b"\x01"


def test_descriptors_are_bounded_and_the_idle_go_first(logs: Path) -> None:
    """With three descriptors, the three logs that were read last stay open."""
    reader = EntryLogReader(logs, open_max=3)
    for log_id in (1, 2, 3, 1, 4, 1, 5):
        assert reader.read(log_id, 0, 1) == bytes([log_id])
    assert open_logs(logs) == ["1.log", "4.log", "5.log"]


def test_a_forgotten_log_is_closed(logs: Path) -> None:
    """The descriptor of a deleted log is closed, and a new log of its name is opened again."""
    reader = EntryLogReader(logs)
    reader.read(1, 0, 1)
    (logs / "1.log").unlink()
    assert reader.read(1, 0, 1) == b"\x01"
    reader.forget(1)
    reader.forget(9)
    assert open_logs(logs) == []
    with pytest.raises(OSError, match=r"1\.log"):
        reader.read(1, 0, 1)
    (logs / "1.log").write_bytes(b"new")
    assert reader.read(1, 0, 3) == b"new"


def test_many_threads_few_descriptors(logs: Path) -> None:
    """Sixteen threads that read and forget 32 logs with two descriptors always get bytes of the right log."""
    reader = EntryLogReader(logs, open_max=2)
    start = threading.Barrier(16)

    def work(seed: int) -> None:
        random = Random(seed)
        start.wait()
        for _ in range(500):
            log_id = random.randrange(32)
            assert reader.read(log_id, random.randrange(4000), 64) == bytes([log_id]) * 64
            if random.random() < 0.1:
                reader.forget(random.randrange(32))

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(work, range(16)))
    assert len(open_logs(logs)) <= 2
