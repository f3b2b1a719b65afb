"""The location index of a stopped bookie, read entry by entry and run by run, without a lock file and without a
change.

It uses the `lmdb` package, because this is for inspection, not for serving. A damaged file must not be mapped,
because a missing page would crash the process: call `verify_index` first.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import lmdb

from bookie._fast.index.codec import unpack_ledger, unpack_run
from bookie._fast.index.view import Run
from bookie.errors import ToolRefused

__all__ = ["EntryPlace", "IndexFile", "LedgerRow", "list_entries", "reading"]

RECORD_HEADER = 4
FIRST_RUN = bytes(16)
"""The lowest key of a run; the head of the chain of runs is below it."""


class LedgerRow(NamedTuple):
    """A record of the ledgers table of the index."""

    ledger: int
    fenced: bool
    limbo: bool
    key: bytes
    lac: bytes
    quarantine: int
    """0, or the reason for the quarantine: an index into `bookie._fast.store.quarantine.REASONS`."""


class EntryPlace(NamedTuple):
    """The location of one entry."""

    entry: int
    log_id: int
    offset: int
    """The offset of the length word."""
    length: int
    """The length of the entry, without the length word."""


class IndexFile:
    """An index opened read-only by `reading`."""

    def __init__(self, path: Path, transaction: Any, locations: Any, ledgers: Any) -> None:
        self.path = path
        self._transaction = transaction
        self._locations = locations
        self._ledgers = ledgers

    def ledgers(self) -> Iterator[LedgerRow]:
        """Yield every ledger record, in order of ledger. Raises ToolRefused if one is damaged."""
        for key, value in self._transaction.cursor(db=self._ledgers):
            try:
                ledger, fenced, limbo, master_key, lac, why = unpack_ledger(key, value)
            except ValueError as error:
                raise self._damaged("ledger record", key, error) from error
            yield LedgerRow(ledger, fenced, limbo, master_key, lac, why)

    def runs(self, ledger: int | None = None) -> Iterator[Run]:
        """Yield every run, or those of one ledger, by ledger and entry. Raises ToolRefused if one is damaged."""
        cursor = self._transaction.cursor(db=self._locations)
        prefix = b"" if ledger is None else ledger.to_bytes(8, "big")
        found = cursor.set_range(prefix or FIRST_RUN)
        while found:
            key, value = cursor.item()
            if not key.startswith(prefix):
                return
            try:
                owner, first, log_id, offset, lengths = unpack_run(key, value)
            except ValueError as error:
                raise self._damaged("run", key, error) from error
            yield Run(owner, first, log_id, offset, lengths)
            found = cursor.next()

    def _damaged(self, what: str, key: bytes, error: ValueError) -> ToolRefused:
        return ToolRefused(f"{self.path}: the {what} with key {key.hex()} is damaged ({error}); rebuild the index")


@contextmanager
def reading(index: Path) -> Iterator[IndexFile]:
    """Open the index in directory `index`. Raises ToolRefused if it is missing or not an index."""
    if not (index / "data.mdb").is_file():
        raise ToolRefused(f"{index} holds no index; rebuild it from the entry logs")
    try:
        env = lmdb.open(str(index), readonly=True, lock=False, max_dbs=4, create=False)
    except lmdb.Error as error:
        raise ToolRefused(f"{index} cannot be opened as an index: {error}; rebuild it from the entry logs") from error
    try:
        with env.begin(buffers=False) as transaction:
            try:
                tables = [env.open_db(name, transaction, create=False) for name in (b"locations", b"ledgers")]
            except lmdb.Error as error:
                raise ToolRefused(f"{index} lacks a table: {error}; rebuild it from the entry logs") from error
            yield IndexFile(index, transaction, *tables)
    finally:
        env.close()


def list_entries(index: Path, ledger: int) -> Iterator[EntryPlace]:
    """Yield the location of every stored entry of a ledger, in order of entry id."""
    with reading(index) as file:
        for run in file.runs(ledger):
            offset = run.offset
            for entry, length in enumerate(run.lengths, run.first):
                if length:
                    yield EntryPlace(entry, run.log_id, offset, length)
                    offset += RECORD_HEADER + length
