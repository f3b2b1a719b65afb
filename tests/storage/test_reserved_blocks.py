"""Disk blocks that a killed process had reserved beyond the end of its entry logs (reserved_blocks)."""

import logging
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bookie.storage.reserved_blocks import BLOCK_BYTES, LEAST_BYTES, give_back_blocks
from tests.reference.storage import entry
from tests.storage.opened import MIB, Opened

ROOT = Path(__file__).resolve().parents[2]
LOG_BYTES = 256 * MIB


def dies(root: Path) -> None:
    """Run the child: write a few bytes to a log that may become large, and die."""
    one = Opened(root, log_bytes_max=LOG_BYTES)
    one.direct.add(entry(1, 0))
    assert one.direct.commit()
    one.checkpoint()
    os.kill(os.getpid(), signal.SIGKILL)


def occupied(path: Path) -> int:
    """Return the bytes that a file occupies on the disk."""
    return path.stat().st_blocks * BLOCK_BYTES


def test_a_start_gives_them_back(tmp_path: Path) -> None:
    """The log keeps its contents and size; only the reserved blocks go."""
    code = (
        f"from pathlib import Path; from tests.storage.test_reserved_blocks import dies; dies(Path({str(tmp_path)!r}))"
    )
    child = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False, timeout=120, capture_output=True)
    assert child.returncode == -signal.SIGKILL, child.stderr.decode()
    (path,) = tmp_path.glob("ledgers-0/current/*.log")
    before = path.read_bytes()
    if occupied(path) < LEAST_BYTES:
        pytest.skip("this file system reserves no blocks ahead")
    one = Opened(tmp_path)
    assert occupied(path) < LEAST_BYTES
    assert path.read_bytes() == before
    held = one.direct.read(1, 0, count=1, size=MIB)
    assert held.entries() == [entry(1, 0)]
    held.release()
    one.stop()


def test_only_blocks_behind_the_end(tmp_path: Path) -> None:
    """Neither a log that fills its blocks nor a file that is not an entry log is touched."""
    full, other = tmp_path / "a.log", tmp_path / "a.txn"
    for path, size in ((full, 2 * LEAST_BYTES), (other, 512)):
        path.write_bytes(bytes([1]) * size)
    fd = os.open(other, os.O_WRONLY)
    os.posix_fallocate(fd, 0, 4 * LEAST_BYTES)
    os.ftruncate(fd, 4 * LEAST_BYTES)
    os.close(fd)
    before = {path: (path.stat().st_mtime_ns, occupied(path)) for path in (full, other)}
    assert give_back_blocks(tmp_path) == 0
    assert {path: (path.stat().st_mtime_ns, occupied(path)) for path in (full, other)} == before


def test_a_log_that_cannot_be_cut_stops_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The log is reported, and the others are processed."""
    (tmp_path / "1.log").symlink_to("1.log")
    with caplog.at_level(logging.WARNING):
        assert give_back_blocks(tmp_path) == 0
    assert "stay allocated" in caplog.text
