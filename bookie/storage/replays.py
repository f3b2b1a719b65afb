"""Replay of all journals into all stores: at start as far as memory and disks have room, and the rest as room becomes
free.

A full ledger disk takes no flush, so at most the write cache of its directory can be replayed. A directory with more
to replay lags: its ledgers are known, with master key, fence and LAC, but the bookie never answers that one of their
entries does not exist, the directory takes no adds, and its mark does not move past what it lacks. `run` belongs to
the start-up thread, beside which flushers run; `go_on` to the flush thread, beside none.
"""

import logging
from collections.abc import Sequence
from pathlib import Path

from bookie._fast.base.file import Files
from bookie._fast.store.flushers import end_flushes
from bookie._fast.store.replay import NOT_HERE, end_lag, replay_file
from bookie._fast.store.storage import StorageEngine
from bookie.errors import StartRefused
from bookie.storage.layout import journal_files
from bookie.storage.marks import Mark, mark_name
from bookie.storage.recovery import Progress, RecoveryReport, Tolerance, begins_in, note_held, replay_journal

__all__ = ["Replay"]

log = logging.getLogger(__name__)


class Replay:
    """The replay of one start, on `current` directories. `marks` has those of the ledger directories by journal."""

    def __init__(
        self,
        stores: StorageEngine,
        opener: Files,
        ledger_dirs: Sequence[Path],
        journal_dirs: Sequence[Path],
        marks: Sequence[Sequence[Mark]],
        *,
        tolerance: Tolerance,
    ) -> None:
        self._stores = stores
        self._opener = opener
        self._ledger_dirs = ledger_dirs
        self._journal_dirs = journal_dirs
        self._marks = marks
        self._tolerance = tolerance
        self._newest = [max(journal_files(path), default=0) for path in journal_dirs]
        self._held: list[list[Mark | None]] = []

    def run(self, progress: Progress | None = None) -> RecoveryReport:
        """Replay all journals. Raises StartRefused for a problem that an operator must solve."""
        report = RecoveryReport()
        full: set[int] = set()
        for index, directory in enumerate(self._journal_dirs):
            name = mark_name(index, len(self._journal_dirs))
            found, held = replay_journal(
                self._stores,
                self._opener,
                directory,
                self._marks[index],
                full=full,
                owners=[str(path / name) for path in self._ledger_dirs],
                tolerance=self._tolerance,
                progress=progress,
            )
            report += found
            self._held.append(held)
        end_flushes(self._stores)
        for at in sorted(full):
            facts = {"directory": self._ledger_dirs[at], "remedy": "free space; the replay then continues by itself"}
            log.error("a ledger disk is full, and the journal holds more entries than fit into memory", extra=facts)
        return report

    def go_on(self) -> bool:
        """Replay entries that found no room before, as far as there is room. Return True if none are left."""
        before = self._lagging()
        full: set[int] = set()
        for index, directory in enumerate(self._journal_dirs):
            self._held[index] = self._again(index, directory, full)
        after = self._lagging()
        for at in before - after:
            end_lag(self._stores, at)
            log.warning("the replay of a ledger directory is complete", extra={"directory": self._ledger_dirs[at]})
        return not after

    def _lagging(self) -> set[int]:
        return {at for held in self._held for at, mark in enumerate(held) if mark is not None}

    def _again(self, index: int, directory: Path, full: set[int]) -> list[Mark | None]:
        """Replay the entries of one journal that found no room. Groups are read from where the first pass began."""
        held: list[Mark | None] = [None] * len(self._ledger_dirs)
        lacking = self._held[index]
        oldest = min((mark.file_id for mark in lacking if mark is not None), default=None)
        if oldest is None:
            return held
        for file_id in journal_files(directory):
            if not oldest <= file_id <= self._newest[index]:
                continue
            path = directory / f"{file_id:x}.txn"
            start = min(begin for begin in begins_in(self._marks[index], file_id) if begin != NOT_HERE)
            begins = begins_in(lacking, file_id)
            found, first = replay_file(
                self._stores, self._opener, str(path), file_id, start, begins, full=full, again=True
            )
            if found["status"] != 0:
                raise StartRefused(
                    f"{path} was replayed at start, but can no longer be read (status {found['status']})"
                )
            note_held(held, first, file_id, full)
        return held
