"""Test the access log (server.access_log): lines describe requests as they were answered, files are rotated, and no
request waits for the log.
"""

import csv
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bookie._fast.server.access_log import AccessLogBuffer
from tests.hostile.local import LocalBookie, local_bookie
from tests.hostile.peer import add, batch, entry_of, read
from tests.reference.wire_v2 import encode_request

COLUMNS = "ts_us,op,ledger_id,entry_id,size,source,log_id,position,client,latency_us"


def rows(path: Path) -> list[dict[str, str]]:
    """Return the lines of one file."""
    with path.open() as lines:
        return list(csv.DictReader(lines))


@pytest.fixture
def log_path(tmp_path: Path) -> Path:
    """Return a path outside of the bookie's directories."""
    return tmp_path / "access.csv"


@pytest.fixture
def bookie(tmp_path: Path, log_path: Path) -> Iterator[LocalBookie]:
    """Run a bookie that logs every request."""
    with local_bookie(tmp_path / "bookie", access_log=str(log_path), access_log_share=1.0) as one:
        yield one


def test_each_way_an_entry_is_served(bookie: LocalBookie, log_path: Path) -> None:
    """Adds, batch reads, and reads from the write cache, disk and read cache are logged. A failed read is not."""
    before = time.time_ns() // 1000
    with bookie.peer() as peer:
        for entry in range(3):
            assert peer.ask(add(7, entry, b"data")).code == 0
        assert peer.ask(read(7, 1)).code == 0
        assert bookie.storage.checkpoint()
        for entry in (2, 2, 9):
            peer.ask(read(7, entry))
        peer.ask(batch(7, 0))
        host, port = peer.sock.getsockname()[:2]
    bookie.until("access_log_lines", lambda lines: lines >= 7)
    found = rows(log_path)
    size = str(len(entry_of(7, 0, b"data")))
    assert [(row["op"], row["entry_id"], row["source"]) for row in found] == [
        ("add", "0", ""), ("add", "1", ""), ("add", "2", ""), ("read", "1", "write_cache"), ("read", "2", "disk"),
        ("read", "2", "read_cache"), ("batch_read", "0", "disk")]  # fmt: skip
    assert [row["size"] for row in found] == [size] * 6 + [str(3 * int(size))]
    assert {row["ledger_id"] for row in found} == {"7"}
    assert {row["client"] for row in found} == {f"{host}:{port}"}
    record = int(size) + 4
    assert [row["position"] for row in found if row["source"] == "disk"] == [str(1024 + 2 * record), "1024"]
    assert all((row["log_id"] == "") == (row["source"] != "disk") for row in found)
    assert all(before <= int(row["ts_us"]) <= time.time_ns() // 1000 for row in found)
    assert all(0 <= int(row["latency_us"]) < 60_000_000 for row in found)
    assert log_path.read_text().splitlines()[0] == COLUMNS


def test_files_take_turns(tmp_path: Path, log_path: Path) -> None:
    """Number and size of the files are limited, no line is lost at a rotation, and a start begins a new file."""
    settings: dict[str, Any] = {"access_log": str(log_path), "access_log_share": 1.0, "access_log_file_bytes_max": 2000}
    for start in range(2):
        with local_bookie(tmp_path / "bookie", access_log_files_max=3, **settings) as bookie, bookie.peer() as peer:
            for entry in range(start * 200, start * 200 + 200):
                assert peer.ask(add(1, entry, b"")).code == 0
            bookie.until("access_log_lines", lambda lines: lines == 200)
    files = [log_path, Path(f"{log_path}.1"), Path(f"{log_path}.2")]
    assert sorted(log_path.parent.glob("access.csv*")) == files
    assert all(one.stat().st_size < 2400 for one in files)
    newest_first = [int(row["entry_id"]) for one in files for row in reversed(rows(one))]
    assert newest_first == list(range(399, 399 - len(newest_first), -1))


@pytest.mark.thorough
def test_a_share_of_them(tmp_path: Path, log_path: Path) -> None:
    """At a share of 0.1 about 400 of 4,000 adds are logged. Without a path there is no access log."""
    with local_bookie(tmp_path / "one", access_log=str(log_path), access_log_share=0.1) as bookie:
        with bookie.peer() as peer:
            for entry in range(4000):
                peer.ask(add(1, entry, b""))
        bookie.until("access_log_lines", lambda lines: lines > 200)
    assert 200 < len(rows(log_path)) < 700
    with local_bookie(tmp_path / "two") as bookie:
        assert "access_log_lines" not in bookie.port.stats()


def test_a_disk_that_takes_nothing(tmp_path: Path) -> None:
    """Requests are served although no file can be written; lines that are lost or find a full buffer are counted."""
    gone = str(tmp_path / "gone" / "access.csv")
    with (
        local_bookie(tmp_path / "bookie", access_log=gone, access_log_share=1.0, io_threads=1) as bookie,
        bookie.peer() as peer,
    ):
        assert peer.ask(add(1, 0, b"")).code == 0
        bookie.until("access_log_lost", lambda lines: lines == 1)
        peer.sock.sendall(b"".join(encode_request(add(1, entry, b"")) for entry in range(1, 12_000)))
        bookie.until("adds", lambda adds: adds == 12_000)
        bookie.until("access_log_dropped", lambda rows: rows > 3000)
        assert bookie.stat("access_log_lines") == 0


@pytest.mark.parametrize("wrong", [{"sample_rate": 0.0}, {"sample_rate": 1.5}, {"files_max": 65}, {"files_max": 0}])
def test_settings_out_of_range(log_path: Path, wrong: dict[str, float]) -> None:
    """A setting that is out of range is refused with an error that names the range."""
    settings = {"sample_rate": 1.0, "file_bytes_max": 100, "files_max": 2, **wrong}
    with pytest.raises(ValueError, match="they must be in"):
        AccessLogBuffer(log_path, **settings)  # type: ignore[arg-type]
