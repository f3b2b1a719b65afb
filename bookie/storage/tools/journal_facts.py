"""What the journals of a bookie say about each ledger: master key, fence, explicit LAC, and that it exists at all.

Every file is read, including those before the mark, because the journal may be all that is left; nothing is changed.
Records after damage are not read; the report of `check_journals` shows that.
"""

import os
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bookie._fast.journal.reader import JournalRows, scan_journal
from bookie.errors import ToolRefused
from bookie.storage.layout import journal_files

__all__ = ["journal_facts", "LedgerFacts", "META_FENCE", "META_KEY", "META_LAC"]

META_KEY, META_FENCE, META_LAC = -0x1000, -0x2000, -0x8000
REST_AT = 4 + 16
"""The offset after the length word, the ledger and the kind."""
LAC_PACKET = struct.Struct(">qq")


@dataclass(slots=True)
class LedgerFacts:
    """The facts about one ledger; None or False where the journals say nothing."""

    key: bytes | None = None
    fenced: bool = False
    lac: bytes = b""
    """The highest explicit LAC, as the client sent it."""


def journal_facts(directories: Iterable[Path], *, skip_unreadable: bool = False) -> dict[int, LedgerFacts]:
    """Return the facts by ledger, from the `current` directories of all journals, reading files in the order in which
    they were written.

    Raises ToolRefused if a file is not a journal or cannot be read, unless `skip_unreadable` is set.
    """
    facts: dict[int, LedgerFacts] = {}
    for directory in directories:
        for file_id in journal_files(directory):
            path = directory / f"{file_id:x}.txn"
            try:
                rows = scan_journal(path, file_id)
            except (ValueError, OSError) as error:
                if skip_unreadable:
                    continue
                raise ToolRefused(f"{error}; or continue without it (--skip-unreadable)") from error
            for ledger in np.unique(rows.ledger).tolist():
                facts.setdefault(ledger, LedgerFacts())
            _take_in(path, rows, facts)
    return facts


def _take_in(path: Path, rows: JournalRows, facts: dict[int, LedgerFacts]) -> None:
    """Add the keys, fences and LACs of one file, in order. Of two keys the first one counts, as in a replay."""
    metadata_rows = np.flatnonzero(rows.kind < 0)
    columns: Sequence[list[int]] = [
        column[metadata_rows].tolist() for column in (rows.ledger, rows.kind, rows.position, rows.length)
    ]
    fd = os.open(path, os.O_RDONLY)
    try:
        for ledger, kind, position, length in zip(*columns, strict=True):
            fact = facts[ledger]
            if kind == META_FENCE:
                fact.fenced = True
            elif kind in (META_KEY, META_LAC):
                _take_bytes(fact, kind, os.pread(fd, length + 4 - REST_AT, position + REST_AT))
    finally:
        os.close(fd)


def _take_bytes(fact: LedgerFacts, kind: int, rest: bytes) -> None:
    size = int.from_bytes(rest[:4], "big")
    data = rest[4 : 4 + size]
    if len(data) != size:
        return  # the record is shorter than the content that it announces, so no replay could use it
    if kind == META_KEY and not any(fact.key or b""):
        fact.key = data
    if kind == META_LAC and size >= LAC_PACKET.size and _lac(data) >= _lac(fact.lac):
        fact.lac = data


def _lac(packet: bytes) -> int:
    return int(LAC_PACKET.unpack_from(packet)[1]) if packet else -1
