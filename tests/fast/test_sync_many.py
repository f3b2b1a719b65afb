"""Test syncs of many files at once (base.sync_many), by asynchronous I/O of the kernel or one by one."""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from tests.crash.power_cut import LOSSES, VolatileDisk
from tests.reference import entry_log

ROOT = Path(__file__).resolve().parents[2]
LOGS = 150
AT_ONCE = f"""
import sys, threading
from pathlib import Path
from bookie._fast.entrylog.set import EntryLogSet
from tests.reference import entry_log
def write(directory):
    logs = EntryLogSet(directory, active_max={LOGS})
    for at in range(5):
        for ledger in range({LOGS}):
            logs.append(ledger, entry_log.entry(ledger, at, bytes(5000)))
        logs.sync()
root = Path(sys.argv[1])
threads = [threading.Thread(target=write, args=(root / str(at),)) for at in range(3)]
for at, thread in enumerate(threads):
    (root / str(at)).mkdir()
    thread.start()
for thread in threads:
    thread.join()
print("synced", flush=True)
"""
BODY = f"""
import sys
from pathlib import Path
from bookie._fast.entrylog.set import EntryLogSet
from tests.reference import entry_log
logs = EntryLogSet(Path(sys.argv[1]), active_max={LOGS})
for ledger in range({LOGS}):
    logs.append(ledger, entry_log.entry(ledger, 0, bytes(5000)))
logs.sync()
print("synced", flush=True)
logs.append(0, entry_log.entry(0, 1, b"never synced"))
import os; os._exit(0)
"""


def written(directory: Path, environment: dict[str, str], body: str = BODY) -> subprocess.CompletedProcess[str]:
    """Write logs of many ledgers, synced by one call, in a process that then exits without closing them."""
    directory.mkdir()
    return subprocess.run(
        [sys.executable, "-c", body, str(directory)],
        cwd=ROOT,
        env={**os.environ, **environment},
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )


def found(directory: Path) -> int:
    """Return how many logs contain their ledger's first entry."""
    return sum(len(entry_log.scan(path.read_bytes()).records) == 1 for path in directory.glob("*.log"))


def test_b1_what_many_syncs_cover_survives_a_power_cut(tmp_path: Path) -> None:
    """Synced logs survive on a disk that forgets everything else, without the kernel's asynchronous I/O."""
    disk = VolatileDisk(tmp_path / "logs", tmp_path)
    child = written(tmp_path / "logs", disk.environment())
    assert child.stdout == "synced\n", child.stderr
    disk.cut_power(random.Random(0), LOSSES[:1])
    assert found(tmp_path / "logs") == LOGS


@pytest.mark.parametrize("log", ["0.log", "40.log", f"{LOGS - 1:x}.log"])
def test_b2_one_failure_among_many_is_told(tmp_path: Path, log: str) -> None:
    """The failure is reported, whichever file it is."""
    disk = VolatileDisk(tmp_path / "logs", tmp_path)
    child = written(tmp_path / "logs", disk.environment(fail_sync=f"/{log}"))
    assert "Input/output error" in child.stderr
    assert not child.stdout


def test_by_the_kernel(tmp_path: Path) -> None:
    """Syncs by the kernel, as in a bookie, leave all entries in the logs."""
    child = written(tmp_path / "logs", {})
    assert child.stdout == "synced\n", child.stderr
    assert found(tmp_path / "logs") == LOGS


def test_of_several_directories_at_once(tmp_path: Path) -> None:
    """Each caller gets the results of its own files, while others sync theirs."""
    child = written(tmp_path / "logs", {}, AT_ONCE)
    assert child.stdout == "synced\n", child.stderr
    for directory in (tmp_path / "logs").iterdir():
        assert [len(entry_log.scan(path.read_bytes()).records) for path in directory.glob("*.log")] == [5] * LOGS
