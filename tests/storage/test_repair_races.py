"""The repair of a location index beside deletions and compaction (store.gc.index_repair, store.gc.compaction,
store.gc.ledger_removal; B6, B7, B14).

Stalled calls force the interleavings.
"""

import threading
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.fixtures.faults import go_on
from tests.reference.storage import entry
from tests.storage.opened import Opened
from tests.storage.test_index_repair import ENTRIES, KEY, LEDGERS, a_run, data, flip, readable, repaired, stored


def test_b14_a_ledger_in_doubt_is_deleted(tmp_path: Path) -> None:
    """A search for what a ledger in doubt lost brings nothing back if the ledger was deleted, and created anew."""
    one = stored(tmp_path)
    flip(one, a_run(one), 3)
    readable(one)
    one.storage.repairs[0].salvage()
    ledger = doubtful(one)[0]
    one.checkpoint()
    assert one.storage.collectors()[0].delete_ledgers([ledger]) == 1
    one.direct.add(entry(ledger, 0, payload=b"new"), KEY)
    assert one.direct.commit()
    one.checkpoint()
    repaired(one)
    for number in range(1, ENTRIES):
        held = one.direct.read(ledger, number)
        assert held.status == "NO_ENTRY"
        held.release()
    one.crash()
    one = Opened(tmp_path)
    one.stop()


def doubtful(one: Opened) -> list[int]:
    """Return the ledgers in doubt."""
    return [ledger for ledger, _ in one.storage.repairs[0]._repair.doubts()]


class Before:
    """The compiled half of a repair, which lets something happen before found entries are taken."""

    def __init__(self, repair: Any, event: Any) -> None:
        self._repair = repair
        self._event = event

    def __getattr__(self, name: str) -> Any:
        return getattr(self._repair, name)

    def take_found(self, *args: Any) -> None:
        """Call the event, then take what was found."""
        self._event()
        self._repair.take_found(*args)


def compacted(one: Opened, faulty: ModuleType, *, nth: int) -> tuple[threading.Thread, list[str]]:
    """Let the compaction of the first log stall at a write to its target."""
    collector = one.storage.collectors()[0]
    first = collector.closed_logs().ids.tolist()[0]
    collector.live_bytes()
    target = int((Path(collector.directory) / "lastId").read_text(), 16) + 1
    rule = faulty.plan("pwritev", "STALL", suffix=f"/{target:x}.log", nth=nth)
    outcomes: list[str] = []
    thread = threading.Thread(target=lambda: outcomes.append(collector.compact(first).outcome))
    thread.start()
    assert faulty.wait_hit(rule, 60)
    return thread, outcomes


def lose_a_run(one: Opened) -> None:
    """Damage a run of the first log, and replace the index by its readable part."""
    flip(one, a_run(one), 3)
    assert readable(one) < LEDGERS * ENTRIES
    one.storage.repairs[0].salvage()
    assert doubtful(one)


def test_b6_a_log_is_kept_while_it_is_searched(tmp_path: Path, faulty: ModuleType) -> None:
    """An entry was to be moved when the index lost it. Its log is not removed, so what a search found there exists."""
    one = restarted(stored(tmp_path), tmp_path, files=faulty.FaultyFiles())
    try:
        thread, outcomes = compacted(one, faulty, nth=2)
        lose_a_run(one)

        def go() -> None:
            go_on()
            thread.join()

        repair = one.storage.repairs[0]
        repair._repair = Before(repair._repair, go)  # type: ignore[assignment]
        repaired(one)
    finally:
        go_on()
    assert outcomes == ["repaired"]
    assert readable(one) == LEDGERS * ENTRIES
    collected(one)
    one = restarted(one, tmp_path)
    assert readable(one) == LEDGERS * ENTRIES
    one.stop()


def large(ledger: int, number: int) -> bytes:
    """Return an entry of which a thousand are more than compaction writes at once."""
    return entry(ledger, number, payload=f"{ledger}:{number}".encode() * 1000)


def test_b6_copies_that_are_given_up_are_not_found(tmp_path: Path, faulty: ModuleType) -> None:
    """A search takes no copies of a compaction that are not committed: they go when the disk is full."""
    settings = {"log_bytes_max": 32 << 20, "write_cache_bytes": 32 << 20}
    one = Opened(tmp_path, **settings)  # type: ignore[arg-type]
    places = [(ledger, number) for ledger in range(LEDGERS) for number in range(30)]
    for ledger, number in places:
        one.direct.add(large(ledger, number), KEY)
        assert number % 10 or one.direct.commit()
    assert one.direct.commit()
    one.checkpoint()
    one = restarted(one, tmp_path, files=faulty.FaultyFiles(), **settings)
    try:
        thread, outcomes = compacted(one, faulty, nth=3)
        flip(one, a_run(one), 3)
        assert not all(read_large(one, *place) for place in places)
        one.storage.repairs[0].salvage()
        repaired(one)
        faulty.plan("pwritev", "ENOSPC", suffix=".log")
        faulty.release()
        thread.join()
    finally:
        go_on()
    assert outcomes == ["no space"]
    assert all(read_large(one, *place) for place in places)
    collected(one)
    assert all(read_large(one, *place) for place in places)
    one.stop()


def read_large(one: Opened, ledger: int, number: int) -> bool:
    """Return whether an entry is read; it must not be denied or wrong."""
    held = one.direct.read(ledger, number)
    try:
        assert held.status in {"OK", "IO_ERROR", "CORRUPT"}
        if held.status != "OK":
            return False
        assert held.entries() == [large(ledger, number)]
        return True
    finally:
        held.release()


def restarted(one: Opened, root: Path, **settings: Any) -> Opened:
    """Start anew, so that all logs are closed."""
    one.crash()
    return Opened(root, **settings)


def collected(one: Opened) -> None:
    """Compact all closed logs."""
    collector = one.storage.collectors()[0]
    collector.live_bytes()
    for log_id in collector.closed_logs().ids.tolist():
        assert collector.compact(log_id).outcome == "unlinked"


def test_b7_a_log_grows_while_it_is_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compaction has committed the only copies of a log's entries, and appends those of another one meanwhile."""
    one = restarted(stored(tmp_path), tmp_path)
    for number in range(ENTRIES):
        one.direct.add(data(LEDGERS, number), KEY)
    assert one.direct.commit()
    one.checkpoint()
    one = restarted(one, tmp_path, log_bytes_max=1 << 20)
    collector, repair = one.storage.collectors()[0], one.storage.repairs[0]
    first, second = collector.closed_logs().ids.tolist()[:2]
    collector.live_bytes()
    assert collector.compact(first).outcome == "unlinked"
    lose_a_run(one)
    real = repair._logs_of

    def listed(ledgers: Any) -> Any:
        found = real(ledgers)
        assert collector.compact(second).moved_records > 0
        return found

    monkeypatch.setattr(repair, "_logs_of", listed)
    assert repair.step(0)
    assert not doubtful(one)
    assert readable(one) == LEDGERS * ENTRIES
    one.stop()
