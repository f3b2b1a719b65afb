"""The records of an entry log or a journal file, one by one, for people. Only reads; a bookie may be running."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bookie._fast.entrylog.scan import LogChunk, scan_entry_log
from bookie._fast.journal.reader import scan_journal
from bookie.errors import ToolRefused
from bookie.storage.layout import HEX_NAME
from bookie.storage.tools.journal_facts import META_FENCE, META_KEY, META_LAC

__all__ = ["JournalRecord", "JournalRecords", "log_ledgers", "LogRecord", "LogRecords"]

META_FORCE = -0x4000
ROWS = 1 << 14
KINDS = {META_KEY: "master key", META_FENCE: "fence", META_LAC: "explicit LAC", META_FORCE: "force"}


class LogRecord(NamedTuple):
    """One record of an entry log. `offset` is that of its length word; `bytes` does not count the length word."""

    ledger: int
    entry: int
    offset: int
    bytes: int


class LedgerShare(NamedTuple):
    """The entries and bytes of one ledger in a log, including length words."""

    entries: int
    bytes: int


class JournalRecord(NamedTuple):
    """One record of a journal. `kind` names its kind; `entry` is None unless it is an entry."""

    ledger: int
    kind: str
    entry: int | None
    offset: int
    bytes: int


@dataclass(slots=True)
class LogRecords:
    """The records of an entry log, optionally only those of one ledger or entry id, or between two offsets. Iterate
    over it once.

    `end` and `torn` are valid after the iteration, which raises ToolRefused if the file is not an entry log.
    """

    path: Path
    ledger: int | None = None
    entry: int | None = None
    start: int = 0
    stop: int | None = None
    end: int = 0
    """The offset at which the scan ended."""
    torn: bool = False
    """Whether it ended in the middle of a record."""

    def __iter__(self) -> Iterator[LogRecord]:
        for chunk in _chunks(self.path):
            wanted = chunk.offset >= self.start
            if self.stop is not None:
                wanted &= chunk.offset < self.stop
            for column, value in ((chunk.ledger, self.ledger), (chunk.entry, self.entry)):
                if value is not None:
                    wanted &= column == value
            columns = (column[wanted].tolist() for column in (chunk.ledger, chunk.entry, chunk.offset, chunk.length))
            self.end, self.torn = chunk.end, chunk.torn
            yield from (LogRecord(*row) for row in zip(*columns, strict=True))


def log_ledgers(path: Path) -> dict[int, LedgerShare]:
    """Return the share of each ledger, counted over all records. Raises ToolRefused if the file is not an entry log."""
    found: dict[int, LedgerShare] = {}
    for chunk in _chunks(path):
        ids, at, counts = np.unique(chunk.ledger, return_inverse=True, return_counts=True)
        sizes = np.zeros(len(ids), np.int64)
        np.add.at(sizes, at, chunk.length.astype(np.int64) + 4)
        for ledger, entries, size in zip(ids.tolist(), counts.tolist(), sizes.tolist(), strict=True):
            before = found.get(ledger, LedgerShare(0, 0))
            found[ledger] = LedgerShare(before.entries + entries, before.bytes + size)
    return dict(sorted(found.items()))


class JournalRecords:
    """The records of a journal file, or those of one ledger. Raises ToolRefused if it is not a journal."""

    def __init__(self, path: Path, ledger: int | None = None) -> None:
        name = HEX_NAME.match(path.name)
        try:
            self.file = scan_journal(path, int(name[1], 16) if name else 0)
        except (ValueError, OSError) as error:
            raise _refusal(path, error) from error
        self._ledger = ledger

    def __iter__(self) -> Iterator[JournalRecord]:
        file = self.file
        for at in range(0, len(file.ledger), ROWS):
            columns = (one[at : at + ROWS].tolist() for one in (file.ledger, file.kind, file.position, file.length))
            for owner, kind, offset, size in zip(*columns, strict=True):
                if self._ledger is None or owner == self._ledger:
                    yield JournalRecord(owner, *_kind(kind), offset, size)


def _chunks(path: Path) -> Iterator[LogChunk]:
    try:
        yield from scan_entry_log(path)
    except (ValueError, OSError) as error:
        raise _refusal(path, error) from error


def _refusal(path: Path, error: ValueError | OSError) -> ToolRefused:
    why = "it is a directory" if path.is_dir() else getattr(error, "strerror", None)
    return ToolRefused(str(error) if why is None else f"{path} cannot be read: {why}")


def _kind(code: int) -> tuple[str, int | None]:
    """Decode the second number of a record: return the kind, and the entry id if it is an entry."""
    return ("entry", code) if code >= 0 else (KINDS.get(code, hex(code)), None)
