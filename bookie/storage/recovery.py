"""Replay of the journals at start: which files are read, from which offset, and which damage stops the bookie."""

import contextlib
import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from bookie._fast.base.file import Files
from bookie._fast.store.replay import NOT_HERE, replay_file
from bookie._fast.store.storage import StorageEngine
from bookie.errors import StartRefused
from bookie.storage.group_ends import ends_at, is_ours, was_written
from bookie.storage.layout import journal_files
from bookie.storage.marks import Mark

__all__ = [
    "begins_in",
    "files_to_replay",
    "note_held",
    "Progress",
    "RecoveryReport",
    "replay_journal",
    "settle_tails",
    "Tolerance",
]

log = logging.getLogger(__name__)

Progress = Callable[[int, int], None]
"""Called with the bytes done and the total bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """The kinds of damage that a start tolerates."""

    skip_damaged: bool = False
    """Skip journal files and groups that are missing or damaged, and log that."""
    same_boot: bool = False
    """The machine has not been restarted since the journal was written, so even the last group must be intact."""


STRICT = Tolerance()


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryReport:
    """The result of a replay: the number of files, records of each kind, and bytes that were read.

    `tails` has the last file with records of each journal, and where a torn group at its end begins, or None.
    """

    files: int = 0
    entries: int = 0
    fences: int = 0
    skipped: int = 0
    refused: int = 0
    bytes: int = 0
    tails: tuple[tuple[Path, int | None], ...] = ()

    def __add__(self, other: "RecoveryReport") -> "RecoveryReport":
        return RecoveryReport(
            files=self.files + other.files,
            entries=self.entries + other.entries,
            fences=self.fences + other.fences,
            skipped=self.skipped + other.skipped,
            refused=self.refused + other.refused,
            bytes=self.bytes + other.bytes,
            tails=self.tails + other.tails,
        )


def files_to_replay(directory: Path, files: list[int], marks: Sequence[Mark], owners: Sequence[str] = ()) -> list[int]:
    """Return the ids of the journal files that are not below the lowest mark.

    `owners` names the mark file of each ledger directory, for the error. Raises StartRefused if a file that a mark
    names is missing, because its entries would be lost.
    """
    for at, mark in enumerate(marks):
        if mark.file_id > 0 and mark.file_id not in files:
            owner = owners[at] if owners else "lastMark"
            raise StartRefused(
                f"{owner} names the journal file {mark.file_id:x}.txn, which is missing from {directory}; restore that"
                " file; or, if a ledger directory was restored from an older copy, restore its newer state; otherwise"
                " repair this bookie from its peers as after the loss of a disk"
            )
    lowest = min(marks, default=Mark()).file_id
    return [file_id for file_id in files if file_id >= lowest]


def replay_journal(
    stores: StorageEngine,
    opener: Files,
    directory: Path,
    marks: Sequence[Mark],
    *,
    full: set[int],
    owners: Sequence[str] = (),
    tolerance: Tolerance = STRICT,
    progress: Progress | None = None,
) -> tuple[RecoveryReport, list[Mark | None]]:
    """Replay one journal directory into the stores, in file order, each store from its own mark in `marks`.

    Return the report and, for each store, the position of the first entry that found no room, or None. Such stores
    are added to `full` and take no more entries. Only the tail of the last file with records may be torn. Raises
    StartRefused for a missing or damaged file, and for a file that ends before a mark, unless `tolerance` allows it.
    """
    skip_damaged = tolerance.skip_damaged
    wanted = files_to_replay(directory, journal_files(directory), marks, owners)
    _refuse_gaps(directory, wanted, skip_damaged=skip_damaged)
    sizes = {file_id: (directory / f"{file_id:x}.txn").stat().st_size for file_id in wanted}
    report = RecoveryReport()
    held: list[Mark | None] = [None] * len(marks)
    torn: Path | None = None
    tail: tuple[tuple[Path, int | None], ...] = ()
    done = 0
    for file_id in wanted:
        path = directory / f"{file_id:x}.txn"
        _refuse_short(path, file_id, marks, owners, skip_damaged=skip_damaged)
        begins = begins_in(marks, file_id)
        start = min(begin for begin in begins if begin != NOT_HERE)
        found, first_held = replay_file(stores, opener, str(path), file_id, start, begins, full=full)
        note_held(held, first_held, file_id, full)
        _refuse_if_damaged(path, found, skip_damaged=skip_damaged)
        if torn is not None and found["records"]:
            _refuse_torn(torn, path, skip_damaged=skip_damaged)
        if found["torn"]:
            torn = path
            log.info("a journal file ends in a torn group file=%s at=%d", path, found["end"])
            if tolerance.same_boot and was_written(path, file_id, found["end"]):
                _refuse_last(path, found["end"], skip_damaged=skip_damaged)
        if (found["records"] or found["torn"]) and not found["damaged"]:
            tail = ((path, found["end"] if found["torn"] else None),)
        done += sizes[file_id]
        if progress is not None:
            progress(done, sum(sizes.values()))
        report += RecoveryReport(
            files=1,
            entries=found["entries"],
            fences=found["fences"],
            skipped=found["skipped"],
            refused=found["refused"],
            bytes=max(found["end"] - start, 0),
        )
    return report + RecoveryReport(tails=tail), held


def settle_tails(report: RecoveryReport) -> None:
    """Cut off a torn group at the end of each journal, and sync the file. Raises OSError.

    Until marks move, these files are replayed again after a further crash, together with records of later files. So
    what was read here must stay, though the last process may have died before it synced it; and a torn group, of
    which nobody was told, must not stay before other records, where a replay takes it for damage. A file is gone if
    the checkpoint of this start has written all marks, some of them in place because a disk is full.
    """
    for path, torn_at in report.tails:
        with contextlib.suppress(FileNotFoundError), path.open("r+b") as file:
            if torn_at is not None:
                file.truncate(torn_at)
            os.fsync(file.fileno())


def note_held(held: list[Mark | None], first: Sequence[int], file_id: int, full: set[int]) -> None:
    """Record, for each store, where its first entry that found no room lies; recorded positions stay."""
    for at, position in enumerate(first):
        if position >= 0:
            held[at] = held[at] or Mark(file_id, position)
            full.add(at)


def begins_in(marks: Sequence[Mark | None], file_id: int) -> list[int]:
    """Return the offset at which the replay of each store begins in a file; a mark of None has nothing to replay."""
    return [NOT_HERE if mark is None else _begin(mark, file_id) for mark in marks]


def _begin(mark: Mark, file_id: int) -> int:
    """Return where the replay of a ledger directory begins in a file, or NOT_HERE if it begins in a later one."""
    if mark.file_id > file_id:
        return NOT_HERE
    return max(mark.offset, 0) if mark.file_id == file_id else 0


def _refuse_gaps(directory: Path, files: Sequence[int], *, skip_damaged: bool) -> None:
    """Raise StartRefused if a file is missing. Our ids are consecutive; Apache BookKeeper's older ones are times."""
    for before, after in pairwise(files):
        if after == before + 1 or not all(is_ours(directory / f"{one:x}.txn") for one in (before, after)):
            continue
        lacking = (
            f"the journal file {before + 1:x}.txn between {before:x}.txn and {after:x}.txn is missing from {directory}"
        )
        if not skip_damaged:
            raise StartRefused(
                f"{lacking}; restore it, or set skipReplayJournalInvalidRecord=true to start without its entries"
            )
        log.error("%s; the replay continues without its entries", lacking)


def _refuse_short(
    path: Path, file_id: int, marks: Sequence[Mark], owners: Sequence[str], *, skip_damaged: bool
) -> None:
    """Raise StartRefused if a file ends before a mark. That part was synced when the mark was written; if it is gone,
    so may be what followed it.
    """
    for at, mark in enumerate(marks):
        if mark.file_id != file_id or ends_at(path, file_id, mark.offset):
            continue
        owner = owners[at] if owners else "lastMark"
        lacking = f"{owner} names offset {mark.offset} of {path}, but no group ends there: the journal was truncated"
        if not skip_damaged:
            raise StartRefused(
                f"{lacking} or replaced by an older copy; restore the file, or set skipReplayJournalInvalidRecord=true"
                " to start without the entries that it may have held"
            )
        log.error("%s; the replay continues without the entries that it may have held", lacking)


def _refuse_if_damaged(path: Path, found: dict[str, int], *, skip_damaged: bool) -> None:
    if found["status"] != 0:
        raise StartRefused(
            f"{path} cannot be replayed (version {found['version']}, status {found['status']}): "
            "it is not a journal file that this bookie can read, or its records contradict each other"
        )
    if not found["damaged"]:
        return
    if not skip_damaged:
        raise StartRefused(
            f"{path} is damaged at offset {found['damaged_at']}, and intact records follow; restore the file, or set "
            "skipReplayJournalInvalidRecord=true to start without the rest of the file"
        )
    log.error("the rest of a damaged journal file is skipped file=%s at=%d", path, found["damaged_at"])


def _refuse_torn(torn: Path, later: Path, *, skip_damaged: bool) -> None:
    if not skip_damaged:
        raise StartRefused(
            f"{torn} ends in a torn group, but records follow it in {later.name}; restore the file, or set "
            "skipReplayJournalInvalidRecord=true to start without the torn group"
        )
    log.error("a torn group in the middle of the journal is skipped file=%s", torn)


def _refuse_last(path: Path, at: int, *, skip_damaged: bool) -> None:
    """Raise StartRefused for a damaged last group: nothing proves that it was acknowledged, or that it was not."""
    if not skip_damaged:
        raise StartRefused(
            f"{path} is damaged at offset {at}: its last group was written completely and has changed since; restore"
            " the file, or set skipReplayJournalInvalidRecord=true to start without this group"
        )
    log.error("a damaged group at the end of the journal is skipped file=%s at=%d", path, at)
