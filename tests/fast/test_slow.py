"""Disks of a set latency and rate (`testing.slow`), which measurements use.

Waits are compared with what they must last at least, never with what they may last at most. Each test has a process of
its own, because slow disks stay until a process ends. This needs the modules for tests: `BOOKIE_FAULTS=1 make build`.
"""

import subprocess
import sys
from pathlib import Path

import pytest

slow = pytest.importorskip("bookie._fast.testing.slow", reason="build with BOOKIE_FAULTS=1")

LOG = """
import sys, time
from pathlib import Path
from bookie._fast.entrylog.writer import EntryLog
from bookie._fast.testing import slow

def written(directory, files=None):
    '''Write an entry of 200,000 bytes to a log and close it; return the nanoseconds.'''
    directory.mkdir()
    log = EntryLog(directory, 0, 1 << 30, files or slow.SlowFiles())
    begun = time.monotonic_ns()
    log.append(1, [(1).to_bytes(8, "big") + bytes(8) + bytes(200_000)])
    log.sync()
    log.rotate()
    return time.monotonic_ns() - begun

root = Path(sys.argv[1])
"""


def run(script: str, directory: Path) -> None:
    """Run a script with the functions above; its asserts must hold."""
    command = [sys.executable, "-c", LOG + script, str(directory)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_writes_take_as_long_as_the_rate_says(tmp_path: Path) -> None:
    """Bytes of a disk pass one after the other; files elsewhere are as fast as ever, and are not counted."""
    run(
        """
slow.set_disks([[str(root / "a")], [str(root / "b")]], latency_us=0, bytes_s=2_000_000)
took = written(root / "a")
assert slow.used()[0].bytes >= 200_000
assert took >= slow.used()[0].bytes * 500
written(root / "elsewhere")
written(root / "ab")
assert slow.used()[1] == (0, 0)
""",
        tmp_path,
    )


def test_writes_and_syncs_take_a_latency(tmp_path: Path) -> None:
    """Each of the operations of a disk, one after the other by one thread."""
    run(
        """
slow.set_disks([[str(root / "a")]], latency_us=20_000)
took = written(root / "a")
assert slow.used()[0].operations >= 3
assert took >= slow.used()[0].operations * 20_000_000
""",
        tmp_path,
    )


def test_a_commit_takes_two_latencies(tmp_path: Path) -> None:
    """LMDB writes and syncs its file itself, on the disk where the file is."""
    run(
        """
from bookie._fast.index.view import Index
slow.set_disks([[str(root / "a")], [str(root / "b")]], latency_us=50_000)
(root / "b").mkdir()
begun = time.monotonic_ns()
index = Index.open(root / "b")
assert slow.used()[0] == (0, 0)
assert slow.used()[1].operations >= 1
assert time.monotonic_ns() - begun >= slow.used()[1].operations * 100_000_000
""",
        tmp_path,
    )


def test_wrong_arguments() -> None:
    """They are named, and change nothing."""
    with pytest.raises(ValueError, match="latency_us -1"):
        slow.set_disks([], latency_us=-1)
    with pytest.raises(ValueError, match="at most 64 disks"):
        slow.set_disks([[f"/{at}"] for at in range(65)], latency_us=1)
    with pytest.raises(ValueError, match="below 1024 bytes"):
        slow.set_disks([["/" + "a" * 1024]], latency_us=1)
    assert slow.used() == []
