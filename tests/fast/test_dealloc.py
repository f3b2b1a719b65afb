"""Test compiled objects dropped in a cycle: the collector clears what they refer to before their end."""

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bookie._fast.base.file import Files
from bookie._fast.cache.view import LedgerPages
from bookie._fast.entrylog.rows import LogRows
from bookie._fast.index.search import RunFile
from bookie._fast.index.view import Index
from bookie._fast.journal.rows import JournalRows
from bookie._fast.store.direct import JournalWriter
from bookie._fast.wire.record_rows import RowSheet
from bookie.client.entries.digest import Digest
from tests.fast.test_journal_commit import journal
from tests.fixtures.leaks import descriptors
from tests.reference import entry_log
from tests.reference import journal as journal_model
from tests.storage.opened import Opened

DIGEST = Digest.of(password=b"p").digester
EVENTS = "anon_inode:[eventfd]"
WRITERS_MORE = 200
"""More than a journal takes at a time."""


class Cycle:
    """Refers to itself and to a thing that was created before, so that the collector clears the thing first."""

    def __init__(self, thing: object) -> None:
        self.thing = thing
        self.itself = self


@contextmanager
def collected(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Collect the garbage of the body at its end, which must raise nothing and leave no file open."""
    gc.collect()
    raised: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: raised.append(unraisable.exc_value))
    gc.disable()
    before = descriptors()
    try:
        yield
        gc.collect()
    finally:
        gc.enable()
    assert not raised
    assert descriptors().items() <= before.items()


def log_rows(tmp_path: Path) -> LogRows:
    path = tmp_path / "0.log"
    path.write_bytes(entry_log.build([], closed=False))
    return LogRows(path, RowSheet([DIGEST]), files=Files())


def journal_rows(tmp_path: Path) -> JournalRows:
    path = tmp_path / "1a.txn"
    path.write_bytes(journal_model.build([journal_model.record(3, journal_model.FENCE)], 0x1A))
    return JournalRows(path, 0x1A, RowSheet([DIGEST]))


def run_file(tmp_path: Path) -> RunFile:
    index = Index.open(tmp_path)
    index.begin()
    index.put_run(1, 0, 1, 1024, [100])
    index.commit()
    index.close()
    return RunFile(tmp_path / "data.mdb")


def ledger_pages(_tmp_path: Path) -> LedgerPages:
    pages = LedgerPages()
    pages.show([1, 2, 3])
    return pages


@pytest.mark.parametrize("make", [ledger_pages, log_rows, journal_rows, run_file])
def test_what_is_dropped_in_a_cycle_is_released(
    make: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files of an object that the collector finds are closed, and its memory is freed without an error."""
    with collected(monkeypatch):
        Cycle(make(tmp_path))


def test_a_writer_dropped_in_a_cycle_leaves_its_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A journal wakes no writer that the collector has found, so others find room."""
    with journal(tmp_path) as (committer, writer):
        for _ in range(WRITERS_MORE):
            with collected(monkeypatch):
                Cycle(JournalWriter(committer))
        group = writer.append(journal_model.record(3, journal_model.FENCE))
        assert writer.commit()
        assert writer.published() == group


def test_direct_stores_dropped_in_a_cycle_leave_the_journals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Direct outlives the stores that it uses, even if the collector finds both."""
    opened = Opened(tmp_path)
    user = opened.user()
    opened.crash()
    gone = Cycle((user, opened))
    before = descriptors()
    del user, opened
    with collected(monkeypatch):
        del gone
    assert list(before.values()).count(EVENTS) == list(descriptors().values()).count(EVENTS) + 1
