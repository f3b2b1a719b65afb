"""Replay of the journals at start: which files, from where, and when a damaged one stops the bookie."""

import logging
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
    "Tolerance",
]

log = logging.getLogger(__name__)

Progress = Callable[[int, int], None]
"""Called with (bytes done, bytes in all)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """What a start passes over."""

    skip_damaged: bool = False
    """What is not there, or not as it was written: passed over, and said."""
    same_boot: bool = False
    """The machine has run since the journal was written, so that even its last group is as it was written."""


STRICT = Tolerance()


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryReport:
    """What replay found: files read, records by kind, bytes."""

    files: int = 0
    entries: int = 0
    fences: int = 0
    skipped: int = 0
    refused: int = 0
    bytes: int = 0

    def __add__(self, other: "RecoveryReport") -> "RecoveryReport":
        return RecoveryReport(
            files=self.files + other.files,
            entries=self.entries + other.entries,
            fences=self.fences + other.fences,
            skipped=self.skipped + other.skipped,
            refused=self.refused + other.refused,
            bytes=self.bytes + other.bytes,
        )


def files_to_replay(directory: Path, files: list[int], marks: Sequence[Mark], owners: Sequence[str] = ()) -> list[int]:
    """The ids at and above the lowest mark. StartRefused when a file that a mark names is gone: entries would be lost.

    `owners`: what to call the mark of each ledger directory.
    """
    for at, mark in enumerate(marks):
        if mark.file_id > 0 and mark.file_id not in files:
            owner = owners[at] if owners else "lastMark"
            raise StartRefused(
                f"{owner} names {mark.file_id:x}.txn, and {directory} lacks the journal file {mark.file_id:x}.txn; put"
                " it back, or, where a ledger directory went back in time, put its newer state back; else repair this"
                " bookie from its peers as after a lost disk"
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
    """Replay one journal directory into the stores, into each from its own of `marks`, in their order.

    Answers too, of each store, where the first entry lies that found no room; such stores come into `full`, and take no
    more entries. Only the tail of the last file that holds anything may be torn. StartRefused for a missing or damaged
    file, and for one that does not reach up to a mark, as far as `tolerance` has it.
    """
    skip_damaged = tolerance.skip_damaged
    wanted = files_to_replay(directory, journal_files(directory), marks, owners)
    _refuse_gaps(directory, wanted, skip_damaged=skip_damaged)
    sizes = {file_id: (directory / f"{file_id:x}.txn").stat().st_size for file_id in wanted}
    report = RecoveryReport()
    held: list[Mark | None] = [None] * len(marks)
    torn: Path | None = None
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
            log.info("journal file ends in a torn group file=%s at=%d", path, found["end"])
            if tolerance.same_boot and was_written(path, file_id, found["end"]):
                _refuse_last(path, found["end"], skip_damaged=skip_damaged)
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
    return report, held


def note_held(held: list[Mark | None], first: Sequence[int], file_id: int, full: set[int]) -> None:
    """Where entries of a file found no room: the first one of each store stays."""
    for at, position in enumerate(first):
        if position >= 0:
            held[at] = held[at] or Mark(file_id, position)
            full.add(at)


def begins_in(marks: Sequence[Mark | None], file_id: int) -> list[int]:
    """Where the replay of each store begins in a journal file. None: it has all."""
    return [NOT_HERE if mark is None else _begin(mark, file_id) for mark in marks]


def _begin(mark: Mark, file_id: int) -> int:
    """Where the replay of a ledger directory begins in a journal file; NOT_HERE: behind it."""
    if mark.file_id > file_id:
        return NOT_HERE
    return max(mark.offset, 0) if mark.file_id == file_id else 0


def _refuse_gaps(directory: Path, files: Sequence[int], *, skip_damaged: bool) -> None:
    """Our files have consecutive ids; Apache BookKeeper's old ones have the time."""
    for before, after in pairwise(files):
        if after == before + 1 or not all(is_ours(directory / f"{one:x}.txn") for one in (before, after)):
            continue
        lacking = f"{directory} lacks the journal file {before + 1:x}.txn between {before:x}.txn and {after:x}.txn"
        if not skip_damaged:
            raise StartRefused(
                f"{lacking}; put it back, or set skipReplayJournalInvalidRecord=true to go on without what it held"
            )
        log.error("%s; going on without what it held", lacking)


def _refuse_short(
    path: Path, file_id: int, marks: Sequence[Mark], owners: Sequence[str], *, skip_damaged: bool
) -> None:
    """What a mark names was there and synced when the mark was written: if it is gone, so may be what followed it."""
    for at, mark in enumerate(marks):
        if mark.file_id != file_id or ends_at(path, file_id, mark.offset):
            continue
        owner = owners[at] if owners else "lastMark"
        lacking = f"{owner} names offset {mark.offset} of {path}, and no group ends there: the journal was cut short"
        if not skip_damaged:
            raise StartRefused(
                f"{lacking} or went back in time; restore the file, or set skipReplayJournalInvalidRecord=true to go on"
                " without what it may have held"
            )
        log.error("%s; going on without what it may have held", lacking)


def _refuse_if_damaged(path: Path, found: dict[str, int], *, skip_damaged: bool) -> None:
    if found["status"] != 0:
        raise StartRefused(
            f"{path} cannot be replayed (version {found['version']}, status {found['status']}): "
            "not a journal file that this bookie reads, or its records contradict each other"
        )
    if not found["damaged"]:
        return
    if not skip_damaged:
        raise StartRefused(
            f"{path} is damaged at offset {found['damaged_at']}, and good records follow; restore the file, or set "
            "skipReplayJournalInvalidRecord=true to go on without what lies behind the damage"
        )
    log.error("passing over the rest of a damaged journal file=%s at=%d", path, found["damaged_at"])


def _refuse_torn(torn: Path, later: Path, *, skip_damaged: bool) -> None:
    if not skip_damaged:
        raise StartRefused(
            f"{torn} ends in a torn group although {later.name} follows it with records; restore the file, or set "
            "skipReplayJournalInvalidRecord=true to go on without the torn group"
        )
    log.error("passing over a torn group in the middle of the journal file=%s", torn)


def _refuse_last(path: Path, at: int, *, skip_damaged: bool) -> None:
    """Nothing proves that it was acknowledged, and nothing that it was not."""
    if not skip_damaged:
        raise StartRefused(
            f"{path} is damaged at offset {at}: its last group was written whole and has changed since; restore the"
            " file, or set skipReplayJournalInvalidRecord=true to go on without this group"
        )
    log.error("passing over a damaged group at the end of the journal file=%s at=%d", path, at)
