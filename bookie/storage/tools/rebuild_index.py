"""Rebuilds the location index of one ledger directory from its entry logs.

Everything that the index says about entries follows from the logs: they are read in ascending order of id, and of two
copies of an entry the later one counts. Ledger records (master keys, fences, explicit LACs) and the fences of deleted
ledgers are not in the logs: they are carried over from the old index, or passed in. A ledger that is found without a
record was deleted but not yet collected, or is newer than the old index: it is restored as fenced, and takes the
first key that a client sends; if it was deleted, garbage collection notices. Data after a log's torn end is in the
journal, which the next start replays.
"""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bookie._fast.base.file import Files
from bookie._fast.index.codec import unpack_fence, unpack_ledger
from bookie._fast.index.rebuild import Rebuild
from bookie._fast.index.view import Index, Ledger
from bookie.errors import ToolRefused
from bookie.storage import descriptors
from bookie.storage.tools.index_swap import new_index
from bookie.storage.tools.log_files import LogFile, entry_logs
from bookie.storage.tools.progress import Progress, Step, no_progress, no_step
from bookie.storage.tools.verify_index import table_values

__all__ = [
    "fill_index",
    "IndexRebuilt",
    "LogTaken",
    "old_fences",
    "old_records",
    "put_fences",
    "put_records",
    "rebuild_index",
    "RebuildOptions",
]

log = logging.getLogger(__name__)

PART_BYTES = 64 << 20
LEDGER_KEY_BYTES = 8
NOT_YET = 1 << 62
"""A time in the future: the fence begins to age when it is first examined."""
RECORDS_A_COMMIT = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RebuildOptions:
    """Limits, and how to treat a log that is not an entry log or cannot be read."""

    skip_unreadable: bool = False
    """Continue without such a log. Otherwise it stops the tool, because an index without it would deny its entries."""
    map_bytes: int = 1 << 40
    """Address space of the new index."""
    stretch_bytes: int = 64 << 20
    """Memory for sorting records, 24 bytes each, allocated twice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogTaken:
    """The contribution of one entry log to a rebuilt index."""

    path: str
    records: int
    bytes: int
    """Bytes of entries including their length words."""
    end: int
    """The offset at which the scan ended."""
    torn: bool
    """The scan ended inside a record, or at bytes that are not a record."""
    refused: str = ""
    """Why nothing was read from it; empty otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexRebuilt:
    """The contents of the new index, and where they came from."""

    logs: tuple[LogTaken, ...]
    entries: int
    """Records read, including copies."""
    runs: int
    odd: int
    """Records with ids that no index can hold."""
    ledgers: tuple[int, ...]
    """Ledgers that have entries in the logs, in ascending order."""
    without_record: tuple[int, ...] = ()
    """Those of them without a ledger record, which were restored as fenced."""

    @property
    def torn(self) -> tuple[LogTaken, ...]:
        """The logs that ended in the middle of a record."""
        return tuple(taken for taken in self.logs if taken.torn)


def rebuild_index(
    directory: Path,
    index: Path,
    *,
    ledgers: Sequence[int] | NDArray[np.int64] | None = None,
    records: Iterable[Ledger] | None = None,
    options: RebuildOptions | None = None,
    files: Files | None = None,
    progress: Progress = no_progress,
    step: Step = no_step,
) -> IndexRebuilt:
    """Build a new index from the logs of `directory` (a `current` directory), and replace the one at `index` with it
    at the end.

    `ledgers` selects ledgers; None includes every one, even those that were deleted but not yet collected. `records`
    are the new index's ledger records; None carries over those of the old one. Fences of deleted ledgers are carried
    over as far as they can be read. Raises ToolRefused or OSError; the old index is then unchanged.
    """
    given = old_records(index) if records is None else list(records)
    fences = old_fences(index)
    options = options or RebuildOptions()
    with new_index(index, map_bytes=options.map_bytes, step=step) as fresh:
        report = fill_index(
            fresh,
            entry_logs(directory),
            ledgers=ledgers,
            options=options,
            files=files,
            progress=progress,
        )
        step("scanned")
        unknown = tuple(sorted(set(report.ledgers).difference(record.ledger for record in given)))
        put_records(fresh, given)
        put_records(fresh, (Ledger(ledger, b"", fenced=True, limbo=False, lac=b"") for ledger in unknown))
        put_fences(fresh, fences)
    for taken in report.torn:
        log.warning("an entry log is torn file=%s at=%d", taken.path, taken.end)
    if unknown:
        log.warning("ledgers without a record were restored as fenced ledgers=%d first=%d", len(unknown), unknown[0])
    return replace(report, without_record=unknown)


def fill_index(
    fresh: Index,
    logs: Sequence[LogFile],
    *,
    ledgers: Sequence[int] | NDArray[np.int64] | None = None,
    options: RebuildOptions | None = None,
    files: Files | None = None,
    progress: Progress = no_progress,
) -> IndexRebuilt:
    """Add the runs of `logs`, in ascending order, to an empty index. After an error, discard the index."""
    options = options or RebuildOptions()
    rebuild = Rebuild(fresh, ledgers, stretch_bytes=options.stretch_bytes)
    total = sum(file.bytes for file in logs)
    done = 0
    taken = []
    try:
        for file in logs:
            try:
                taken.append(_take(rebuild, file, files, done, total, progress))
            except (ValueError, OSError) as error:
                if isinstance(error, OSError) and error.filename != str(file.path):
                    raise  # an error of the index itself
                descriptors.pass_on_used_up(error)
                taken.append(_refusal(file, error))
                if not options.skip_unreadable:
                    raise ToolRefused(f"{taken[-1].refused}; or continue without it (--skip-unreadable)") from error
            done += file.bytes
            progress(done, total)
        ids, _ = rebuild.finish()
    except BaseException:
        rebuild.abort()
        raise
    return IndexRebuilt(
        logs=tuple(taken), entries=rebuild.taken, runs=rebuild.runs, odd=rebuild.odd, ledgers=tuple(ids.tolist())
    )


def _take(rebuild: Rebuild, file: LogFile, files: Files | None, done: int, total: int, progress: Progress) -> LogTaken:
    records = size = start = 0
    while True:
        part = rebuild.scan(file.path, file.log_id, start, min(PART_BYTES, file.end - start), files)
        records += part.records
        size += part.bytes
        start = part.end
        if not part.more or start >= file.end:
            torn = part.torn and start < file.end
            return LogTaken(path=str(file.path), records=records, bytes=size, end=start, torn=torn)
        progress(done + start, total)


def _refusal(file: LogFile, error: ValueError | OSError) -> LogTaken:
    why = str(error) if isinstance(error, ValueError) else f"{file.path}: {error.strerror}; restore it from a backup"
    log.error("an entry log is skipped file=%s reason=%s", file.path, why)
    return LogTaken(path=str(file.path), records=0, bytes=0, end=0, torn=True, refused=why)


def put_records(index: Index, records: Iterable[Ledger]) -> None:
    """Write ledger records to `index`, in transactions of bounded size."""
    index.begin()
    for count, record in enumerate(records, 1):
        index.put_ledger(record.ledger, record.key, record.fenced, record.limbo, record.lac, record.quarantine)
        if count % RECORDS_A_COMMIT == 0:
            index.commit()
            index.begin()
    index.commit()


def put_fences(index: Index, fences: Iterable[tuple[int, int]]) -> None:
    """Write the fences of deleted ledgers, as (ledger, time of deletion), in transactions of bounded size."""
    index.begin()
    for count, (ledger, deleted_ms) in enumerate(fences, 1):
        index.put_fence(ledger, deleted_ms)
        if count % RECORDS_A_COMMIT == 0:
            index.commit()
            index.begin()
    index.commit()


def old_fences(index: Path) -> list[tuple[int, int]]:
    """Return (ledger, time of deletion) of the readable kept fences of the index that is to be replaced.

    If only the key of one is valid, the fence begins to age anew. The others are lost, which is logged: their ledgers
    are deleted, so they matter only to a writer that does not know of the deletion.
    """
    if not (index / "data.mdb").exists():
        return []
    values, problems = table_values(index, b"fences")
    for problem in problems:
        log.warning("fences of deleted ledgers are damaged problem=%s", problem)
    found = []
    for key, value in values:
        try:
            found.append(unpack_fence(key, value))
        except ValueError:
            ledger = int.from_bytes(key, "big", signed=True)
            if len(key) == LEDGER_KEY_BYTES and ledger >= 0:
                found.append((ledger, NOT_YET))
    return found


def old_records(index: Path) -> list[Ledger]:
    """Return the ledger records of the index that is to be replaced, read without mapping it, because other parts may
    be damaged.

    Raises ToolRefused if they cannot be read.
    """
    if not (index / "data.mdb").exists():
        raise ToolRefused(f"{index} has no ledger records to carry over: bkadmin rebuild-db-ledgers-index")
    values, problems = table_values(index, b"ledgers")
    if problems:
        raise ToolRefused(f"{problems[0]}, ledger records included: bkadmin rebuild-db-ledgers-index")
    rows = [unpack_ledger(key, value) for key, value in values]
    return [Ledger(ledger, key, fenced, limbo, lac, why) for ledger, fenced, limbo, key, lac, why in rows]
