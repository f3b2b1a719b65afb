"""Read and check every journal file: records, the checksum of every group, and that the mark points into one of them.

Read only. A running bookie's newest file may end in a group that is being written; it is told as torn.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bookie._fast.journal.reader import scan_journal
from bookie.storage.layout import journal_files
from bookie.storage.tools.journal_facts import META_FENCE, META_KEY, META_LAC

__all__ = ["check_journals", "JournalChecked"]


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalChecked:
    """One journal file."""

    path: str
    version: int = 0
    records: int = 0
    groups: int = 0
    """That carried a checksum, all of which held."""
    entries: int = 0
    keys: int = 0
    fences: int = 0
    lacs: int = 0
    ledgers: int = 0
    end: int = 0
    """Everything before it is whole."""
    torn: bool = False
    damaged_at: int | None = None
    """Good groups follow the bad one, or a length is impossible."""
    mark: int | None = None
    """The offset of the mark when it lies in this file."""
    to_replay: bool = True
    """It, or a part of it, is read by the next start."""
    problem: str = ""

    @property
    def sound(self) -> bool:
        """Nothing to complain of. A torn end is regular for the last file with records only; see `check_journals`."""
        return not self.problem and self.damaged_at is None


def check_journals(directory: Path, mark: tuple[int, int] = (0, 0)) -> Iterator[JournalChecked]:
    """Every file of one journal's `current` directory, in the order in which they were written.

    `mark`: (file id, offset), as `last_mark` has it. A file that the mark names and that is gone is told of first; a
    torn file with records in a later one has a problem.
    """
    ids = journal_files(directory)
    if mark[0] > 0 and mark[0] not in ids:
        gone = f"{directory} lacks the journal file {mark[0]:x}.txn that the mark names; put it back"
        yield JournalChecked(path=str(directory / f"{mark[0]:x}.txn"), mark=mark[1], problem=gone)
    torn: str | None = None
    for file_id in ids:
        checked = _check(directory / f"{file_id:x}.txn", file_id, mark, torn)
        torn = checked.path if checked.torn else (None if checked.records else torn)
        yield checked


def _check(path: Path, file_id: int, mark: tuple[int, int], torn: str | None) -> JournalChecked:
    try:
        rows = scan_journal(path, file_id)
    except (ValueError, OSError) as error:
        why = str(error) if isinstance(error, ValueError) else f"{path} cannot be read: {error.strerror}"
        return JournalChecked(path=str(path), to_replay=file_id >= mark[0], problem=why)
    here = mark[1] if file_id == mark[0] else None
    problem = ""
    if torn is not None and rows.records:
        problem = f"{torn} before it ends in a torn group: what was acknowledged there is missing"
    if here is not None and here > rows.end:
        problem = f"{path} is whole up to {rows.end} only, but the mark is at {here}"
    return JournalChecked(
        path=str(path),
        version=rows.version,
        records=rows.records,
        groups=rows.groups,
        entries=int((rows.kind >= 0).sum()),
        keys=int((rows.kind == META_KEY).sum()),
        fences=int((rows.kind == META_FENCE).sum()),
        lacs=int((rows.kind == META_LAC).sum()),
        ledgers=len(np.unique(rows.ledger)),
        end=rows.end,
        torn=rows.torn,
        damaged_at=rows.damaged_at,
        mark=here,
        to_replay=file_id >= mark[0],
        problem=problem,
    )
