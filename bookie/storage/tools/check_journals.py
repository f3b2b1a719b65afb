"""A check of every journal file: its records, the checksum of every group, and that the mark points into one of the
files.

It only reads. The newest file of a running bookie may end in a group that is being written, which is reported as
torn.
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
    """The result for one journal file."""

    path: str
    version: int = 0
    records: int = 0
    groups: int = 0
    """Groups with a checksum; all of them matched."""
    entries: int = 0
    keys: int = 0
    fences: int = 0
    lacs: int = 0
    ledgers: int = 0
    end: int = 0
    """The offset up to which the file is intact."""
    torn: bool = False
    damaged_at: int | None = None
    """The offset of a damaged group that intact ones follow, or of an impossible length."""
    mark: int | None = None
    """The offset of the mark, if it is in this file."""
    to_replay: bool = True
    """Whether the next start reads at least a part of the file."""
    problem: str = ""

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong. A torn end is normal only in the last file with records; see `check_journals`."""
        return not self.problem and self.damaged_at is None


def check_journals(directory: Path, mark: tuple[int, int] = (0, 0)) -> Iterator[JournalChecked]:
    """Yield the result for every file of one journal's `current` directory, in the order in which they were written.

    `mark` is (file id, offset), as in `last_mark`. If the file that the mark names is missing, that comes first. A
    file with records has a problem if an earlier file is torn.
    """
    ids = journal_files(directory)
    if mark[0] > 0 and mark[0] not in ids:
        gone = f"the journal file {mark[0]:x}.txn that the mark names is missing from {directory}; restore it"
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
        problem = f"{torn}, an earlier file, ends in a torn group: entries that were acknowledged may be missing there"
    if here is not None and here > rows.end:
        problem = f"{path} is intact only up to offset {rows.end}, but the mark is at {here}"
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
