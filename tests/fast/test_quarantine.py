"""Test ledgers in quarantine (modules store.quarantine, ledger_table): their entries are served, no entry is said not
to exist, and adds are refused.

The quarantine survives restarts, and ends when it is lifted or the ledger is deleted.
"""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from bookie._fast.index.view import Index
from bookie._fast.store import quarantine
from bookie._fast.store.direct import Refused
from bookie._fast.store.gc.ledger_removal import delete_ledgers
from bookie._fast.store.quarantine import REASONS, Quarantine
from bookie._fast.store.storage import DirectoryStore, StorageEngine
from tests.reference.storage import entry
from tests.storage.opened import MIB, Opened

KEY = b"k" * 20
BAD_RECORD = REASONS[7]


@pytest.fixture
def one(tmp_path: Path) -> Iterator[Opened]:
    """Write entries 0 to 4 of ledgers 1 and 2 to entry logs and index, and quarantine ledger 1."""
    opened = Opened(tmp_path)
    for ledger in (1, 2):
        for at in range(5):
            opened.direct.add(entry(ledger, at), KEY)
    assert opened.direct.commit()
    opened.checkpoint()
    assert quarantine.put(stores(opened), 1, BAD_RECORD)
    yield opened
    opened.crash()


def stores(opened: Opened) -> StorageEngine:
    assert opened.storage.stores is not None
    return opened.storage.stores


def handle(opened: Opened) -> DirectoryStore:
    return opened.storage._directory_stores[0]


def answer(opened: Opened, ledger: int, at: int) -> str | list[bytes]:
    """Return the entry, or the status of the failed read."""
    held = opened.direct.read(ledger, at, count=1, size=MIB)
    try:
        return held.entries() if held.status == "OK" else held.status
    finally:
        held.release()


def refusal(opened: Opened, ledger: int, *, recovery: bool = False) -> str:
    """Return the status of an add."""
    try:
        opened.direct.add(entry(ledger, 9), KEY, recovery=recovery)
    except Refused as error:
        return error.status
    return "OK"


def test_it_serves_what_it_has_and_denies_nothing(one: Opened) -> None:
    """A missing entry may have been lost, so the answer is never that it does not exist, not even for the last one."""
    assert answer(one, 1, 3) == [entry(1, 3)]
    assert answer(one, 1, 7) == "UNKNOWN_STATE"
    assert answer(one, 1, -1) == "UNKNOWN_STATE"
    assert answer(one, 2, 7) == "NO_ENTRY"
    assert answer(one, 2, -1) == [entry(2, 4)]


def test_nobody_writes_to_it(one: Opened) -> None:
    """Adds, also of recovery, get an error that makes clients replace this bookie. Other ledgers are written."""
    assert refusal(one, 1) == refusal(one, 1, recovery=True) == "IO_ERROR"
    with pytest.raises(Refused, match="IO_ERROR"):
        one.direct.write_lac((1).to_bytes(8, "big") + (3).to_bytes(8, "big"), KEY)
    assert refusal(one, 2) == "OK"
    assert one.direct.commit()


def test_a_fence_passes(one: Opened) -> None:
    """A recovery can fence the ledger, and read the entries that are here."""
    assert one.direct.fence(1, KEY)
    assert one.direct.commit()
    assert answer(one, 1, 0) == [entry(1, 0)]


def test_it_outlives_a_restart(one: Opened, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The flag and its reason are in the ledger's record of the index, and each start logs them."""
    one.checkpoint()
    one.crash()
    again = Opened(tmp_path)
    assert quarantine.listed(handle(again)) == [Quarantine(1, (BAD_RECORD,))]
    assert again.storage.stats()["quarantined_ledgers"] == 1
    assert refusal(again, 1) == "IO_ERROR"
    assert answer(again, 1, 7) == "UNKNOWN_STATE"
    assert answer(again, 1, 4) == [entry(1, 4)]
    again.storage.tell_damage()
    (line,) = [record.__dict__ for record in caplog.records if record.getMessage() == "a ledger was quarantined"]
    assert (line["ledger"], line["reason"]) == (1, BAD_RECORD)
    again.stop()


def test_each_reason_is_told_once(one: Opened, caplog: pytest.LogCaptureFixture) -> None:
    """Each reason is logged once, and all reasons are listed."""
    assert not quarantine.put(stores(one), 1, BAD_RECORD)
    one.storage.tell_damage()
    assert quarantine.put(stores(one), 1, REASONS[4])
    for _ in range(2):
        one.storage.tell_damage()
    reported = [record.__dict__ for record in caplog.records if record.levelno == logging.ERROR]
    assert [(facts["ledger"], facts["reason"]) for facts in reported] == [(1, BAD_RECORD), (1, REASONS[4])]
    assert "bkadmin quarantine lift" in reported[0]["remedy"]
    assert quarantine.listed(handle(one)) == [Quarantine(1, (REASONS[4], BAD_RECORD))]


def test_it_is_lifted(one: Opened, tmp_path: Path) -> None:
    """Once lifted, it is an ordinary ledger, also after a restart. Lifting it again does nothing."""
    one.checkpoint()
    assert quarantine.lift(stores(one), 1)
    assert not quarantine.lift(stores(one), 1)
    assert quarantine.listed(handle(one)) == []
    assert answer(one, 1, 7) == "NO_ENTRY"
    assert refusal(one, 1) == "OK"
    one.stop()
    again = Opened(tmp_path)
    assert quarantine.listed(handle(again)) == []
    assert answer(again, 1, 9) == [entry(1, 9)]
    again.stop()


def test_a_deleted_ledger_leaves_it(one: Opened) -> None:
    """A deleted ledger leaves the quarantine. Its fence is kept, since the ledger may have had one."""
    one.checkpoint()
    assert delete_ledgers(stores(one), handle(one), [1]) == 1
    assert quarantine.listed(handle(one)) == []
    assert one.storage.stats()["quarantined_ledgers"] == 0
    assert refusal(one, 1) == "FENCED"


def test_what_is_unknown_is_not_put(one: Opened) -> None:
    """An unknown ledger is not put into quarantine, and an unknown reason is an error."""
    assert not quarantine.put(stores(one), 77, BAD_RECORD)
    with pytest.raises(ValueError, match="tuple"):
        quarantine.put(stores(one), 1, "")


@pytest.mark.parametrize("fenced", [False, True])
@pytest.mark.parametrize("reason", range(len(REASONS)))
def test_the_record_carries_it(reason: int, fenced: bool, tmp_path: Path) -> None:
    """Each reason is stored with any other flags, and changes nothing else in the record."""
    index = Index.open(tmp_path, MIB)
    index.begin()
    index.put_ledger(5, KEY, fenced, not fenced, b"lac", reason)
    index.commit()
    reader = index.reader()
    assert reader.ledgers() == [(5, KEY, fenced, not fenced, b"lac", reason)]
    reader.close()
    index.close()


def test_logs_with_its_older_copies_are_kept(one: Opened) -> None:
    """Logs with older copies of its entries are kept, since they may help to repair it, until quarantine is lifted."""
    for at in range(5):
        one.direct.add(entry(2, at, payload=b"again"), KEY, recovery=True)
    assert one.direct.commit()
    assert quarantine.lift(stores(one), 1)
    for at in range(5):
        one.direct.add(entry(1, at, payload=b"again"), KEY, recovery=True)
    assert one.direct.commit()
    one.stop()
    again = Opened(one.ledger_dirs[0].parent)
    assert quarantine.put(stores(again), 1, BAD_RECORD)
    (collector,) = again.storage.collectors()
    first = int(collector.closed_logs().ids[0])
    kept = collector.compact(first)
    assert (kept.outcome, kept.ledger) == ("quarantined", 1)
    assert quarantine.lift(stores(again), 1)
    assert collector.compact(first).outcome == "unlinked"
    again.crash()
