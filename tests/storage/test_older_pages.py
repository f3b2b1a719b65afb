"""Pages of the index's small tables that hold an older state of themselves, because the disk lost a write that it had
acknowledged: sound, and with as many values (index.commit_value; B7, B8).
"""

import errno
import io
import struct
from pathlib import Path

import pytest

from bookie._fast.index.salvage import put_doubts
from bookie._fast.index.view import Index
from bookie._fast.store.direct import Refused
from bookie.storage.tools.verify_index import older_tables, table_values, verify_index
from tests.storage.opened import Opened
from tests.storage.test_index_repair import (
    ENTRIES,
    KEY,
    LEDGERS,
    PAGE,
    data,
    index_file,
    pages,
    readable,
    repaired,
    stored,
    tables,
)


def lost_write(one: Opened, early: bytes, table: str) -> None:
    """Put what the root of a table was in an early commit where it is in the last one."""
    before, now = tables(early)[table], tables(index_file(one).read_bytes())[table]
    assert before != now
    with index_file(one).open("r+b") as file:
        file.seek(now * PAGE)
        file.write(struct.pack("<Q", now) + early[before * PAGE + 8 : (before + 1) * PAGE])


def test_records_older_than_a_fence_fence_all_ledgers(tmp_path: Path) -> None:
    """Nothing tells which record is older, so no writer of any ledger continues. No entry is denied or in doubt."""
    one = stored(tmp_path)
    early = index_file(one).read_bytes()
    one.direct.fence(3, KEY)
    one.stop()
    lost_write(one, early, "ledgers")
    index = index_file(one).parent
    assert older_tables(index) == {b"ledgers"}
    assert "its values add up to another sum" in "".join(verify_index(index).problems)
    again = Opened(tmp_path)
    for ledger in (3, 7):
        state = again.direct.ledger(ledger)
        assert state is not None
        assert state.fenced
        with pytest.raises(Refused, match="FENCED"):
            again.direct.add(data(ledger, ENTRIES), KEY)
    assert not again.storage.repairs[0].step(0), "the entry logs need not be searched"
    assert readable(again) == LEDGERS * ENTRIES
    again.stop()
    assert verify_index(index).problems == ()


def test_a_new_ledger_of_a_lost_page_comes_back(tmp_path: Path) -> None:
    """A ledger that only the entry logs name is restored, also where another was deleted and the number is the same."""
    one = stored(tmp_path)
    early = index_file(one).read_bytes()
    one.direct.add(data(LEDGERS, 0), KEY)
    one.stop()
    index = Index.open(index_file(one).parent)
    index.begin()
    index.delete_ledger(0)
    index.commit()
    index.close()
    lost_write(one, early, "ledgers")
    again = Opened(tmp_path)
    repaired(again)
    state = again.direct.ledger(LEDGERS)
    assert state is not None
    assert state.fenced
    held = again.direct.read(LEDGERS, 0)
    assert (held.status, bytes(held.entries()[0])) == ("OK", data(LEDGERS, 0))
    held.release()
    again.stop()


def test_doubts_of_an_earlier_commit_leave_all_ledgers_in_doubt(tmp_path: Path) -> None:
    """A doubt that was lost with them would be a denial."""
    one = stored(tmp_path)
    one.stop()
    early = b""
    for ledger in (3, 4):
        early = index_file(one).read_bytes()
        index = Index.open(index_file(one).parent)
        put_doubts(index, [ledger])
        index.close()
    lost_write(one, early, "doubts")
    assert older_tables(index_file(one).parent) == {b"doubts"}
    again = Opened(tmp_path)
    held = again.direct.read(7, ENTRIES)
    assert held.status == "IO_ERROR"
    held.release()
    repaired(again)
    assert readable(again) == LEDGERS * ENTRIES
    again.stop()


class BadPage(io.FileIO):
    """A file on a disk that cannot read some pages."""

    pages: frozenset[int] = frozenset()

    def read(self, size: int | None = -1, /) -> bytes:
        """Fail as the disk does."""
        if self.tell() // PAGE in self.pages:
            raise OSError(errno.EIO, "Input/output error")
        return super().read(-1 if size is None else size)


def test_an_unreadable_page_hides_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that the disk cannot read is damage like any other: the records of other pages are found."""
    one = stored(tmp_path, ledgers=200)
    one.stop()
    index = index_file(one).parent
    raw = index_file(one).read_bytes()
    _, *leaves = pages(raw, tables(raw)["ledgers"])
    assert len(leaves) > 1
    monkeypatch.setattr(BadPage, "pages", frozenset(leaves[:1]))
    monkeypatch.setattr(Path, "open", lambda path, *_, **__: BadPage(path))
    values, problems = table_values(index, b"ledgers")
    assert 0 < len(values) < 200
    assert any("cannot be read: Input/output error" in problem for problem in problems)
    assert older_tables(index) == set()
    monkeypatch.setattr(BadPage, "pages", frozenset({0}))
    assert older_tables(index) == set()


def fill(index: Index) -> None:
    """Put records until the map has no room for another one."""
    for ledger in range(1 << 20):
        index.put_ledger(ledger, b"k" * 1000)


def test_a_transaction_that_ended_without_a_commit_counts_for_nothing(tmp_path: Path) -> None:
    """The sum is that of the values which are stored, also after values were replaced, deleted, and put in vain."""
    index = Index.open(tmp_path, 1 << 20)
    for number, commits in enumerate((True, False, True, False, True)):
        index.begin()
        for ledger in range(10 * number, 10 * number + 20):
            index.put_ledger(ledger, b"k" * number)
            index.put_fence(ledger, number)
        index.delete_ledger(10 * number + 3)
        if commits:
            index.commit()
        else:
            index.abort()
    index.begin()
    with pytest.raises(OSError, match="record of ledger"):
        fill(index)
    with pytest.raises(OSError, match="commit"):
        index.commit()
    index.close()
    assert verify_index(tmp_path).problems == ()
    assert older_tables(tmp_path) == set()
    Index.open(tmp_path, 1 << 20).close()
