"""Replay of the journals at start: which files, from where, and when a damaged one stops the bookie."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bookie._fast.file import Files
from bookie._fast.replay import replay_file
from bookie._fast.storage import StoresRoom
from bookie.errors import StartRefused
from bookie.storage.layout import journal_files

__all__ = ["files_to_replay", "RecoveryReport", "replay_journal"]

log = logging.getLogger(__name__)

Progress = Callable[[int, int], None]
"""Called with (bytes done, bytes in all)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryReport:
    """What replay found: files read, records by kind, bytes."""

    files: int = 0
    entries: int = 0
    fences: int = 0
    skipped: int = 0
    bytes: int = 0

    def __add__(self, other: "RecoveryReport") -> "RecoveryReport":
        return RecoveryReport(
            files=self.files + other.files,
            entries=self.entries + other.entries,
            fences=self.fences + other.fences,
            skipped=self.skipped + other.skipped,
            bytes=self.bytes + other.bytes,
        )


def files_to_replay(directory: Path, files: list[int], mark: tuple[int, int]) -> list[int]:
    """The ids at and above the mark. StartRefused when the file that the mark names is gone: entries would be lost."""
    wanted = [file_id for file_id in files if file_id >= mark[0]]
    if mark[0] > 0 and (not wanted or wanted[0] != mark[0]):
        raise StartRefused(
            f"{directory} lacks the journal file {mark[0]:x}.txn that lastMark names; put it back, or repair this "
            "bookie from its peers as after a lost disk"
        )
    return wanted


def replay_journal(
    stores: StoresRoom,
    opener: Files,
    directory: Path,
    mark: tuple[int, int],
    *,
    skip_damaged: bool = False,
    progress: Progress | None = None,
) -> RecoveryReport:
    """Replay one journal directory from its mark into the stores.

    Only the tail of the last file that holds anything may be torn. StartRefused for a missing or damaged file (with
    `skip_damaged` the rest of a damaged file is passed over, and said so).
    """
    wanted = files_to_replay(directory, journal_files(directory), mark)
    sizes = {file_id: (directory / f"{file_id:x}.txn").stat().st_size for file_id in wanted}
    report = RecoveryReport()
    torn: Path | None = None
    done = 0
    for file_id in wanted:
        path = directory / f"{file_id:x}.txn"
        start = mark[1] if file_id == mark[0] else 0
        found = replay_file(stores, opener, str(path), file_id, max(start, 0))
        _refuse_if_damaged(path, found, skip_damaged=skip_damaged)
        if torn is not None and found["records"]:
            _refuse_torn(torn, path, skip_damaged=skip_damaged)
        if found["torn"]:
            torn = path
            log.info("journal file ends in a torn group file=%s at=%d", path, found["end"])
        done += sizes[file_id]
        if progress is not None:
            progress(done, sum(sizes.values()))
        report += RecoveryReport(
            files=1,
            entries=found["entries"],
            fences=found["fences"],
            skipped=found["skipped"],
            bytes=found["end"] - start,
        )
    return report


def _refuse_if_damaged(path: Path, found: dict[str, int], *, skip_damaged: bool) -> None:
    if found["bad_key"] >= 0:
        raise StartRefused(
            f"{path} holds another master key for ledger {found['bad_key']} than the ledgers index; "
            "journal and ledger directories belong to different bookies"
        )
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
