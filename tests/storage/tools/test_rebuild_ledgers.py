"""A lost index rebuilt with its ledger records: keys, fences and LACs from journals, and a start with it."""

import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from bookie._fast.index.view import Index
from bookie._fast.store.direct import Refused
from bookie.errors import ToolRefused
from bookie.storage.tools.journal_facts import journal_facts
from bookie.storage.tools.rebuild_index import RebuildOptions
from bookie.storage.tools.rebuild_ledgers import Place, rebuild_ledgers
from tests.reference import entry_log, journal
from tests.storage.opened import Opened

KEY = b"k" * 20
STEPS = ("begun", "scanned", "filled", "closed", "swapped", "synced")
DIE_AT = """
import os, sys
from pathlib import Path
from bookie.storage.tools.rebuild_ledgers import Place, rebuild_ledgers
def step(name):
    if name == sys.argv[2]:
        os._exit(9)
where = Path(sys.argv[1])
rebuild_ledgers(Place(directory=where, index=where / "locations.lmdb", journals=[]), key_of=lambda _: None, step=step)
"""


def entry(ledger: int, entry_id: int) -> bytes:
    """Return an entry with a LAC and a length before its payload."""
    return struct.pack(">qqqq", ledger, entry_id, entry_id - 1, 0) + b"payload of %d" % entry_id


def lac(ledger: int, value: int) -> bytes:
    """Return an explicit LAC packet."""
    return struct.pack(">qq", ledger, value) + b"sum!"


def test_a_lost_index_comes_back(tmp_path: Path) -> None:
    """With one of two indexes gone after a crash, every acknowledged entry is read, and every ledger is fenced."""
    opened = Opened(tmp_path, ledger_dirs=2)
    for ledger in range(1, 7):
        for entry_id in range(20):
            opened.direct.add(entry(ledger, entry_id), KEY[1:] + bytes([ledger]))
        if ledger == 3:
            opened.checkpoint()
    opened.direct.fence(5, KEY[1:] + bytes([5]))
    opened.direct.write_lac(lac(3, 9), KEY[1:] + bytes([3]))
    opened.direct.write_lac(lac(3, 12), KEY[1:] + bytes([3]))
    assert opened.direct.commit()
    opened.crash()
    current = [directory / "current" for directory in opened.ledger_dirs]
    shutil.rmtree(current[1] / "locations.lmdb")
    journals = [directory / "current" for directory in opened.journal_dirs]
    place = Place(directory=current[1], index=current[1] / "locations.lmdb", journals=journals, position=1, count=2)
    report = rebuild_ledgers(place, key_of=lambda _: None)
    assert (report.ledgers, report.keys_of_journal, report.without_key) == (3, 3, ())
    assert (report.fenced_in_journal, report.lacs) == (1, 1)

    again = Opened(tmp_path, ledger_dirs=2)
    for ledger in range(1, 7):
        for entry_id in range(20):
            held = again.direct.read(ledger, entry_id)
            assert held.entries() == [entry(ledger, entry_id)]
            held.release()
        state = again.direct.ledger(ledger)
        assert state is not None
        assert (state.key, state.fenced) == (KEY[1:] + bytes([ledger]), ledger % 2 == 1)
    state = again.direct.ledger(3)
    assert state is not None
    assert state.explicit_lac == lac(3, 12)
    with pytest.raises(Refused, match="FENCED"):
        again.direct.add(entry(1, 20), KEY[1:] + bytes([1]))
    again.stop()


@pytest.mark.thorough
@pytest.mark.parametrize("step", STEPS)
def test_b3_a_crash_leaves_no_index_or_the_whole(tmp_path: Path, step: str) -> None:
    """After a crash between any two steps the next rebuild succeeds, and leaves nothing beside the index."""
    (tmp_path / "0.log").write_bytes(entry_log.build([entry_log.entry(1, 0), entry_log.entry(2, 0)], closed=True))
    index = tmp_path / "locations.lmdb"
    ended = subprocess.run([sys.executable, "-c", DIE_AT, str(tmp_path), step], check=False, timeout=60)
    assert ended.returncode == 9
    assert (index / "data.mdb").exists() == (STEPS.index(step) >= STEPS.index("swapped"))
    report = rebuild_ledgers(Place(directory=tmp_path, index=index, journals=[]), key_of=lambda _: None)
    assert (report.ledgers, report.index.entries) == (2, 2)
    opened = Index.open(index)
    assert [(one.ledger, one.fenced) for one in opened.reader().ledgers()] == [(1, True), (2, True)]
    opened.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0.log", "locations.lmdb"]


def test_where_keys_come_from(tmp_path: Path) -> None:
    """The journal has priority, then the metadata, then the first writer. A key of zeros in the journal is ignored."""
    logs, journals = tmp_path / "ledgers", tmp_path / "journal"
    logs.mkdir()
    journals.mkdir()
    entries = [entry_log.entry(ledger, 0) for ledger in (1, 2, 3, 4)]
    (logs / "0.log").write_bytes(entry_log.build(entries, closed=True))
    zeros = journal.record(2, journal.MASTER_KEY, struct.pack(">i", 20) + bytes(20))
    known = journal.record(1, journal.MASTER_KEY, struct.pack(">i", 20) + KEY)
    later = journal.record(1, journal.MASTER_KEY, struct.pack(">i", 20) + b"x" * 20)
    only_there = journal.record(9, journal.FENCE)
    (journals / "5.txn").write_bytes(journal.build([zeros + known, later + only_there], 5))
    index = logs / "locations.lmdb"
    place = Place(directory=logs, index=index, journals=[journals])
    report = rebuild_ledgers(place, key_of={1: b"m1", 2: b"m2", 3: b"m3"}.get)
    assert (report.keys_of_journal, report.keys_of_metadata, report.without_key) == (1, 2, (4, 9))
    opened = Index.open(index)
    keys = {record.ledger: record.key for record in opened.reader().ledgers()}
    assert all(record.fenced and not record.limbo for record in opened.reader().ledgers())
    opened.close()
    assert keys == {1: KEY, 2: b"m2", 3: b"m3", 4: b"", 9: b""}


def test_journals_that_cannot_be_read(tmp_path: Path) -> None:
    """A foreign file stops the rebuild unless it may be skipped; a torn tail and an inconsistent record do not."""
    good = journal.build([journal.record(1, journal.MASTER_KEY, struct.pack(">i", 20) + KEY)], 5)
    lies = journal.record(2, journal.MASTER_KEY, struct.pack(">i", 999) + KEY)
    (tmp_path / "5.txn").write_bytes(good + b"\0\0\0\x50torn")
    (tmp_path / "6.txn").write_bytes(journal.header(4) + lies + journal.record(1, journal.LAC, b""))
    facts = journal_facts([tmp_path])
    assert (facts[1].key, facts[1].lac, facts[2].key) == (KEY, b"", None)
    (tmp_path / "7.txn").write_bytes(b"BKLG" + struct.pack(">i", 99) + bytes(600))
    with pytest.raises(ToolRefused, match=r"7\.txn: not a journal.*--skip-unreadable"):
        journal_facts([tmp_path])
    assert journal_facts([tmp_path], skip_unreadable=True).keys() == {1, 2}
    place = Place(directory=tmp_path, index=tmp_path / "locations.lmdb", journals=[tmp_path])
    rebuild_ledgers(place, key_of=lambda _: None, options=RebuildOptions(skip_unreadable=True))
