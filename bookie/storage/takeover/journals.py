"""Fences, master keys and explicit LACs from a Java bookie's journals, including those before the mark.

A checkpoint of DbLedgerStorage that finds no entries to flush moves the mark without updating the ledgers index: a
fence that was acknowledged to a client is then only in a part of the journal that no replay reads. As fences are
permanent, every fence that a journal still holds is valid. Main thread, at start.
"""

import logging
import struct
from collections.abc import Iterator
from pathlib import Path

from bookie._fast.index.view import Ledger
from bookie._fast.journal.reader import scan_journal
from bookie.storage.layout import journal_files

__all__ = ["with_journals"]

log = logging.getLogger(__name__)

KEY, FENCE, LAC = -0x1000, -0x2000, -0x8000
FRAME_BYTES = 20
"""The length word, the ledger and the kind, which precede the content of these records: i32 length, then the bytes."""
SIZE = struct.Struct(">i")
PLACE_OF_LAC = struct.Struct(">qq")


def with_journals(known: dict[int, Ledger], directories: list[Path]) -> dict[int, Ledger]:
    """Return `known` with what the journals say about these ledgers; others were deleted, or are replayed."""
    found = dict(known)
    for directory in directories:
        for file_id in journal_files(directory):
            path = directory / f"{file_id:x}.txn"
            for ledger, kind, data in _records(path, file_id):
                if ledger in found:
                    found[ledger] = _with_record(found[ledger], kind, data)
    late = sum(row.fenced and not known[ledger].fenced for ledger, row in found.items())
    if late:
        log.info("fences were found in journals that the ledgers index lacks count=%d", late)
    return found


def _records(path: Path, file_id: int) -> Iterator[tuple[int, int, bytes]]:
    """Yield (ledger, kind, content) of records that are not entries, up to damage, which the replay judges."""
    try:
        rows = scan_journal(path, file_id)
    except ValueError:
        return
    special = rows.kind < 0
    with path.open("rb") as file:
        for ledger, kind, position, length in zip(
            *(column[special].tolist() for column in (rows.ledger, rows.kind, rows.position, rows.length)), strict=True
        ):
            file.seek(position + FRAME_BYTES)
            yield ledger, kind, file.read(length + SIZE.size - FRAME_BYTES)


def _with_record(ledger: Ledger, kind: int, data: bytes) -> Ledger:
    if kind == FENCE:
        return ledger._replace(fenced=True)
    if kind not in {KEY, LAC} or len(data) < SIZE.size:
        return ledger
    value = data[SIZE.size : SIZE.size + max(SIZE.unpack_from(data)[0], 0)]
    if kind == KEY:
        return ledger._replace(key=value) if any(value) and not any(ledger.key) else ledger
    if len(value) < PLACE_OF_LAC.size:
        return ledger
    newer = not ledger.lac or PLACE_OF_LAC.unpack_from(value)[1] > PLACE_OF_LAC.unpack_from(ledger.lac)[1]
    return ledger._replace(lac=value) if newer else ledger
