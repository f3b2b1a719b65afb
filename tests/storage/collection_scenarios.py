"""Interleavings of garbage collection with reads and flushes, as functions. The tests of storage run them as they
are; tests/crash runs them with a planted bug, where each must fail.
"""

import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.reference.storage import entry
from tests.storage.collecting import KEY, KIB, Collecting

__all__ = ["Scenario", "SCENARIOS"]


def two_ledgers(root: Path, **settings: object) -> Collecting:
    """Create one closed log with a live ledger and a deleted one."""
    from bookie._fast.testing.faulty import FaultyFiles

    one = Collecting(root, log_bytes_max=64 * KIB, files=FaultyFiles(), **settings)
    one.add(1, range(20))
    one.add(2, range(20))
    one.delete(2)
    one.restart()
    return one


def a_log_goes_under_a_read(root: Path) -> None:
    """A look-up found a log that is gone when the read opens it, so the read asks the index again."""
    from bookie._fast.testing import faulty

    one = two_ledgers(root)
    log_id = one.closed()[0]
    rule = faulty.plan("open", "STALL", suffix=f"/{log_id:x}.log")
    user = one.one.user()
    answers: list[tuple[str, list[bytes]]] = []

    def read() -> None:
        held = user.read(1, 5, count=3, size=KIB)
        answers.append((held.status, held.entries()))
        held.release()

    reader = threading.Thread(target=read)
    reader.start()
    try:
        assert faulty.wait_hit(rule, 60)
        assert one.collector.compact(log_id).outcome == "unlinked"
    finally:
        faulty.release()
        reader.join()
        user.close()
        faulty.clear()
    assert answers == [one.model.read(1, 5, 3, KIB)]
    one.check()
    one.stop()


def a_read_while_a_log_is_copied(root: Path) -> None:
    """While a copy of a log is being written, and until it is indexed, the source log serves reads."""
    from bookie._fast.testing import faulty

    one = two_ledgers(root)
    log_id = one.closed()[0]
    target = int((one.directory / "lastId").read_text(), 16) + 1
    rule = faulty.plan("fdatasync", "STALL", suffix=f"/{target:x}.log")
    outcomes: list[str] = []
    compacting = threading.Thread(target=lambda: outcomes.append(one.collector.compact(log_id).outcome))
    compacting.start()
    try:
        assert faulty.wait_hit(rule, 60)
        one.check()
    finally:
        faulty.release()
        compacting.join()
        faulty.clear()
    assert outcomes == ["unlinked"]
    one.check()
    one.stop()


def a_deleted_ledger_is_there_anew(root: Path) -> None:
    """B14: neither the write cache, nor the read cache, nor a flush restores what was deleted."""
    one = Collecting(root)
    one.add(1, range(20), b"old")
    one.one.checkpoint()
    one.check()
    one.add(1, range(20, 30), b"old")
    assert one.collector.delete_ledgers([1]) == 1
    one.model.delete(1)
    one.check()
    one.add(1, range(25, 26), b"new")
    one.check()
    one.one.checkpoint()
    one.check()
    one.restart(crash=True)
    one.check()
    one.stop()


def a_flush_under_way_is_waited_for(root: Path) -> None:
    """B14: a deletion that begins while a half is being flushed also deletes what that flush adds to the index."""
    from bookie._fast.testing import faulty
    from bookie._fast.testing.faulty import FaultyFiles

    one = Collecting(root, log_bytes_max=64 * KIB, files=FaultyFiles())
    one.add(1, range(20))
    one.one.checkpoint()
    one.add(1, range(20, 40))
    one.add(3, range(4))
    rule = faulty.plan("fdatasync", "STALL", suffix=".log")
    flushing = threading.Thread(target=one.one.checkpoint)
    flushing.start()
    known: list[int] = []
    deleting = threading.Thread(target=lambda: known.append(one.collector.delete_ledgers([1])))
    try:
        assert faulty.wait_hit(rule, 60)
        deleting.start()
        one.check()
    finally:
        faulty.release()
        flushing.join()
        deleting.join()
        faulty.clear()
    assert known == [1]
    one.model.delete(1)
    one.check()
    assert one.collector.live_bytes().live.sum() == one.live_in_index()
    one.stop()


def a_read_that_found_a_ledger_deleted(root: Path) -> None:
    """B14: entries that a read brings from the disk while their ledger is deleted do not enter the read cache."""
    from bookie._fast.testing import faulty

    one = two_ledgers(root)
    rule = faulty.plan("pread", "STALL", suffix=f"/{one.closed()[0]:x}.log")
    user = one.one.user()
    reader = threading.Thread(target=lambda: user.read(1, 0, count=3, size=KIB).release())
    reader.start()
    try:
        assert faulty.wait_hit(rule, 60)
        assert one.collector.delete_ledgers([1]) == 1
        one.model.delete(1)
    finally:
        faulty.release()
        reader.join()
        user.close()
        faulty.clear()
    one.one.direct.add(entry(1, 10), KEY)
    one.model.add(entry(1, 10), KEY, recovery=False)
    one.one.direct.commit()
    one.check()
    one.stop()


def entries_added_again_while_copied(root: Path) -> None:
    """While compaction copies a log, some of its entries are added again and flushed to another log: those count."""
    from bookie._fast.testing import faulty

    one = two_ledgers(root)
    log_id = one.closed()[0]
    rule = faulty.plan("fdatasync", "STALL", suffix=".log")
    outcomes: list[str] = []
    collecting = threading.Thread(target=lambda: outcomes.append(one.collector.compact(log_id).outcome))
    collecting.start()
    try:
        assert faulty.wait_hit(rule, 60)
        one.add(1, range(5, 9), mark=b"again")
        one.one.checkpoint()
    finally:
        faulty.release()
        collecting.join()
        faulty.clear()
    assert outcomes == ["unlinked"]
    one.check()
    one.restart()
    one.check()
    one.stop()


@dataclass(frozen=True)
class Scenario:
    """A scenario, and the planted bug that it must reveal, if any (tests/fixtures/planted.py)."""

    tell: Callable[[Path], None]
    bug: str = ""


SCENARIOS = {
    "a log goes under a read": Scenario(a_log_goes_under_a_read, "GONE_IS_NO_ENTRY"),
    "a read while a log is copied": Scenario(a_read_while_a_log_is_copied, "UNLINK_EARLY"),
    "a deleted ledger is there anew": Scenario(a_deleted_ledger_is_there_anew, "DELETE_INDEX_ONLY"),
    "a flush under way is waited for": Scenario(a_flush_under_way_is_waited_for),
    "a read that found a ledger deleted": Scenario(a_read_that_found_a_ledger_deleted),
    "entries added again while their log is copied": Scenario(entries_added_again_while_copied, "MOVED_ANYWAY"),
}

if __name__ == "__main__":
    SCENARIOS[sys.argv[1]].tell(Path(sys.argv[2]))
