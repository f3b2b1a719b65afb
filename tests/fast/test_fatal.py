"""Test the fatal latch (base.fatal): who sets it, and that nothing is acknowledged after it (B2). Each test runs in a
process of its own, since the latch is global and never cleared.
"""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PRELUDE = """
import sys, threading
from pathlib import Path
from bookie._fast.base import fatal
from tests.reference.storage import entry
from tests.storage.opened import Opened
root = Path(sys.argv[1])
"""
FAULTY = "from bookie._fast.testing import faulty\none = Opened(root, files=faulty.FaultyFiles(), prealloc_bytes=1)\n"


def run(body: str, root: Path) -> None:
    """Run code in a child, whose assertions must hold."""
    command = [sys.executable, "-c", PRELUDE + body, str(root)]
    child = subprocess.run(command, cwd=ROOT, check=False, timeout=120, capture_output=True, text=True)
    assert child.returncode == 0, child.stderr


def test_the_first_one_wins(tmp_path: Path) -> None:
    """The waiter sees the first failure, since later ones are consequences. Long texts are truncated."""
    run(
        """
assert fatal.wait(0) is None
waiter = threading.Thread(target=lambda: seen.append(fatal.wait(60)))
seen = []
waiter.start()
fatal.trip("the disk is gone", 5)
fatal.trip("and now this", 6)
fatal.trip("x" * 1000)
waiter.join()
assert seen == [("the disk is gone", 5)] == [fatal.wait(0)]
""",
        tmp_path,
    )


@pytest.mark.parametrize("op", ["pwritev", "fdatasync"])
def test_a_journal_that_fails_acknowledges_nothing_more(tmp_path: Path, op: str) -> None:
    """B2: neither the group of the failed write or sync nor a later one is published. The next start has the rest."""
    pytest.importorskip("bookie._fast.testing.faulty", reason="build with BOOKIE_FAULTS=1")
    run(
        FAULTY
        + f"""
first = one.direct.add(entry(1, 0))
assert one.direct.commit() and one.direct.wait(1, first, 60)
faulty.plan({op!r}, "EIO")
second = one.direct.add(entry(1, 1))
assert not one.direct.commit()
what, code = fatal.wait(0)
assert what.startswith("journal: ") and code == 5, (what, code)
third = one.direct.add(entry(1, 2))
assert not one.direct.commit()
assert not one.direct.wait(1, second, 60) and not one.direct.wait(1, third, 60)
one.crash()
""",
        tmp_path,
    )
    run("one = Opened(root)\nassert one.direct.read(1, 0).status == 'OK'\none.stop()", tmp_path)


@pytest.mark.thorough
@pytest.mark.parametrize("suffix", [".log", "lastMark.tmp"])
def test_a_checkpoint_that_fails_is_the_end(tmp_path: Path, suffix: str) -> None:
    """B2, B4: a failed sync of a checkpoint is not tried again, and the journal still has everything."""
    pytest.importorskip("bookie._fast.testing.faulty", reason="build with BOOKIE_FAULTS=1")
    run(
        FAULTY
        + f"""
one.direct.add(entry(1, 0))
assert one.direct.commit()
faulty.plan("fdatasync", "EIO", suffix={suffix!r})
try:
    one.checkpoint()
    raise AssertionError("no error")
except OSError:
    pass
assert fatal.wait(0)[0].startswith("checkpoint: ")
one.direct.add(entry(1, 1))
assert not one.direct.commit()
one.crash()
""",
        tmp_path,
    )
    run("one = Opened(root)\nassert one.direct.read(1, 0).status == 'OK'\none.stop()", tmp_path)


def test_an_index_that_fails_is_the_end_before_anything_else_is_done(tmp_path: Path) -> None:
    """B2: the latch is set before a failed commit becomes visible, however many ledgers must be marked again."""
    run(
        """
import resource
one = Opened(root)
for ledger in range(50_000):
    one.direct.fence(ledger, b"k" * 20)
    assert ledger % 1000 or one.direct.commit()
assert one.direct.commit()
late = []
def look():
    while True:
        ((_, ops),) = one.storage.store_ops()
        if ops["flush_locations_index"][0].times:
            late.append(fatal.wait(0) is None)
            return
looking = threading.Thread(target=look, daemon=True)
looking.start()
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))   # for the index, which needs more
try:
    one.checkpoint()
    raise AssertionError("no error")
except OSError:
    pass
looking.join()
assert late == [False], late
assert fatal.wait(0)[0].startswith("checkpoint: ")
one.crash()
""",
        tmp_path,
    )


@pytest.mark.thorough
def test_a_failed_sync_of_the_zeros_ahead_is_the_end(tmp_path: Path) -> None:
    """Even ENOSPC is fatal here: groups are in that file, and the next sync would not report that they were lost."""
    pytest.importorskip("bookie._fast.testing.faulty", reason="build with BOOKIE_FAULTS=1")
    run(
        """
from bookie._fast.testing import faulty
from tests.fast.test_journal_commit import journal, record, running
with journal(root, faulty.FaultyFiles(), sync_data=False) as (one, writer), running(one.run_prepare, stop=one.stop):
    faulty.plan("fdatasync", "ENOSPC", suffix=".txn")
    for number in range(32):   # beyond the middle of the first zeros, not beyond them
        writer.append(record(number, 16384))
        writer.commit()
    assert fatal.wait(60) == ("journal: sync of the zeros ahead failed", 28)
""",
        tmp_path,
    )


def test_b2_an_error_that_the_disk_tells_once_reaches_the_group_that_it_belongs_to(tmp_path: Path) -> None:
    """A group is written, and the disk loses it. The sync of the zeros ahead, which happens before the group's own
    sync, gets the error first. Linux reports it once to each open file, so the group's own sync fails as well, and
    nothing of the group is acknowledged.
    """
    pytest.importorskip("bookie._fast.testing.faulty", reason="build with BOOKIE_FAULTS=1")
    run(
        """
from bookie._fast.testing import faulty
from tests.fast.test_journal_commit import journal, record, running
with journal(root, faulty.FaultyFiles()) as (committer, writer):
    for number in range(40):   # beyond the middle of the first zeros: the preparing thread has work
        writer.append(record(number, 16384))
        assert writer.commit()
    lost = faulty.plan("pwritev", "LOST", suffix=".txn")
    stalled = faulty.plan("fdatasync", "STALL", suffix=".txn")
    writer.append(record(40, 16384))
    before, committed = committer.stats()["groups"], []
    thread = threading.Thread(target=lambda: committed.append(writer.commit()))
    thread.start()
    assert faulty.wait_hit(stalled, 60) and faulty.hits(lost) == 1
    with running(committer.run_prepare, stop=committer.stop):
        assert fatal.wait(60) == ("journal: sync of the zeros ahead failed", 5)
    thread.join()
    assert committed == [False] and committer.stats()["groups"] == before
""",
        tmp_path,
    )
