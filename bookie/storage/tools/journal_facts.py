"""What the journals of a bookie say of each ledger: master key, fence, explicit LAC, and that there are entries at all.

Read only, every file there is, also those behind the mark: what a journal kept may be all that is left. What stands
behind damage is not read; the report of `check_journals` tells.
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
"""Behind the length word, the ledger and the kind."""
LAC_PACKET = struct.Struct(">qq")


@dataclass(slots=True)
class LedgerFacts:
    """Of one ledger; what the journals do not say is None or False."""

    key: bytes | None = None
    fenced: bool = False
    lac: bytes = b""
    """The explicit LAC as the client sent it: the highest one."""


def journal_facts(directories: Iterable[Path], *, skip_unreadable: bool = False) -> dict[int, LedgerFacts]:
    """By ledger, from the `current` directories of all journals, files in the order in which they were written.

    ToolRefused when a file is no journal or cannot be read, unless `skip_unreadable`.
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
                raise ToolRefused(f"{error}; or go on without it (--skip-unreadable)") from error
            for ledger in np.unique(rows.ledger).tolist():
                facts.setdefault(ledger, LedgerFacts())
            _take_in(path, rows, facts)
    return facts


def _take_in(path: Path, rows: JournalRows, facts: dict[int, LedgerFacts]) -> None:
    """Keys, fences and LACs of one file, in order: of two keys the first one counts, as at a replay."""
    told = np.flatnonzero(rows.kind < 0)
    columns: Sequence[list[int]] = [
        column[told].tolist() for column in (rows.ledger, rows.kind, rows.position, rows.length)
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
        return  # the record's own length is shorter than what it announces: nobody could replay it
    if kind == META_KEY and not any(fact.key or b""):
        fact.key = data
    if kind == META_LAC and size >= LAC_PACKET.size and _lac(data) >= _lac(fact.lac):
        fact.lac = data


def _lac(packet: bytes) -> int:
    return int(LAC_PACKET.unpack_from(packet)[1]) if packet else -1
