"""A check of every entry log of a directory: records, structure, the ledgers map, and digests where they are known.

It only reads, so a bookie may be running. The log that it is writing ends in zeros and has no map yet, which is
normal.
"""

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from bookie._fast.entrylog.digest_check import bad_digests
from bookie._fast.entrylog.scan import LogChunk, scan_entry_log
from bookie._fast.wire.digest import Digester
from bookie.storage.tools.log_files import LogFile, entry_logs
from bookie.storage.tools.progress import Progress, no_progress

__all__ = [
    "BadEntry",
    "check_log",
    "check_logs",
    "DigestOf",
    "header_of",
    "LogChecked",
    "map_problem",
    "unknown_digest",
]

DigestOf = Callable[[int], Digester | None]
"""Returns what verifies the digests of a ledger, from its metadata; None if it is not known."""

BAD_SHOWN = 100
DIGESTS_CACHED = 1 << 16
MAP_AT = 8
MAP_HEAD = struct.Struct(">iqqi")
MAP_BYTES_MAX = 256 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class BadEntry:
    """A record whose digest is wrong."""

    ledger: int
    entry: int
    offset: int
    """The offset of the record's length word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogChecked:
    """The result for one entry log."""

    path: str
    file_bytes: int
    records: int = 0
    entry_bytes: int = 0
    """Bytes of entries including their length words."""
    ledgers: int = 0
    end: int = 0
    """The offset at which the scan ended."""
    torn: bool = False
    """The scan ended inside a record, or at bytes that are not a record."""
    closed: bool = False
    """Whether the header names a ledgers map."""
    map_problem: str = ""
    """How the map differs from the records; empty if it does not, or there is no map."""
    verified: int = 0
    """Records whose digest was known and checked."""
    bad_count: int = 0
    bad: tuple[BadEntry, ...] = ()
    """The first ones only."""
    problem: str = ""
    """Why the file could not be read as an entry log."""

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong. An open log may be torn, because the journal has the rest."""
        return not (self.problem or self.map_problem or self.bad_count or (self.torn and self.closed))


def unknown_digest(_ledger: int) -> None:
    """Return None: the default for `digest_of`, when no passwords are known."""
    return


def check_logs(
    directory: Path, digest_of: DigestOf = unknown_digest, progress: Progress = no_progress
) -> Iterator[LogChecked]:
    """Yield the result for every log of a `current` directory, in order of id. A damaged log does not end the check."""
    logs = entry_logs(directory)
    total, done = sum(log.bytes for log in logs), 0
    known = lru_cache(DIGESTS_CACHED)(digest_of)
    for log in logs:
        yield check_log(log, known)
        done += log.bytes
        progress(done, total)


def check_log(log: LogFile, digest_of: DigestOf = unknown_digest) -> LogChecked:
    """Check one log. Errors of the file are part of the result; exceptions of `digest_of` are passed on."""
    try:
        header = header_of(log.path)
        sums: dict[int, int] = {}
        records = end = verified = bad_count = 0
        bad: list[BadEntry] = []
        torn = False
        for chunk in scan_entry_log(log.path):
            records += len(chunk.ledger)
            end, torn = chunk.end, chunk.torn
            for ledger, size in _sums(chunk):
                sums[ledger] = sums.get(ledger, 0) + size
            looked_at, wrong = _digests(log.path, chunk, digest_of)
            verified += looked_at
            bad_count += len(wrong)
            bad += wrong[: BAD_SHOWN - len(bad)]
        wrong_map = map_problem(log.path, header, sums) if header[0] and not torn else ""
    except (OSError, ValueError) as error:
        why = str(error) if isinstance(error, ValueError) else f"{log.path} cannot be read: {error.strerror}"
        return LogChecked(path=str(log.path), file_bytes=log.bytes, problem=why)
    return LogChecked(
        path=str(log.path),
        file_bytes=log.bytes,
        records=records,
        entry_bytes=sum(sums.values()),
        ledgers=len(sums),
        end=end,
        torn=torn,
        closed=header[0] != 0,
        map_problem=wrong_map,
        verified=verified,
        bad_count=bad_count,
        bad=tuple(bad),
    )


def header_of(path: Path) -> tuple[int, int]:
    """Return (offset of the map, number of ledgers in it); zeros if the log is open, or the file is too short."""
    with path.open("rb") as file:
        file.seek(MAP_AT)
        data = file.read(12)
    offset, count = struct.unpack(">qi", data) if len(data) == 12 else (0, 0)
    return int(offset), int(count)


def _sums(chunk: LogChunk) -> list[tuple[int, int]]:
    ids, at = np.unique(chunk.ledger, return_inverse=True)
    sizes = np.zeros(len(ids), np.int64)
    np.add.at(sizes, at, chunk.length.astype(np.int64) + 4)
    return list(zip(ids.tolist(), sizes.tolist(), strict=True))


def _digests(path: Path, chunk: LogChunk, digest_of: DigestOf) -> tuple[int, list[BadEntry]]:
    """Return how many records were verified, and which of them are bad."""
    ids, which = np.unique(chunk.ledger, return_inverse=True)
    digesters = [digest_of(ledger) for ledger in ids.tolist()]
    known = np.array([digester is not None for digester in digesters], np.bool_)
    if not known.any():
        return 0, []
    rows = bad_digests(path, chunk.offset, chunk.length, which, digesters)
    found = zip(*(column[rows].tolist() for column in (chunk.ledger, chunk.entry, chunk.offset)), strict=True)
    bad = [BadEntry(ledger=ledger, entry=entry, offset=offset) for ledger, entry, offset in found]
    return int(known[which].sum()), bad


def map_problem(path: Path, header: tuple[int, int], sums: dict[int, int]) -> str:
    """Return the first contradiction between the ledgers map and the records; empty if there is none."""
    offset, count = header
    try:
        ledger_map = _read_map(path, offset)
    except ValueError as error:
        return f"the ledgers map at {offset} cannot be read: {error}"
    if len(ledger_map) != count:
        return f"the header says {count} ledgers, but the map has {len(ledger_map)}"
    for ledger in sorted(ledger_map.keys() | sums.keys()):
        if ledger_map.get(ledger) != sums.get(ledger):
            return f"ledger {ledger} has {sums.get(ledger, 0)} bytes here, but the map says {ledger_map.get(ledger, 0)}"
    return ""


def _read_map(path: Path, offset: int) -> dict[int, int]:
    with path.open("rb") as file:
        if offset < 0:
            raise ValueError("its offset is negative")
        file.seek(offset)
        data = file.read(MAP_BYTES_MAX)
    ledgers: dict[int, int] = {}
    at = 0
    while len(data) - at >= MAP_HEAD.size:
        size, ledger, entry, count = MAP_HEAD.unpack_from(data, at)
        if size == 0 and not any(data[at:]):
            break  # the padding of the last block
        if (ledger, entry) != (-1, -2) or count < 0 or size != 20 + 16 * count or len(data) - at < 4 + size:
            raise ValueError(f"there is no map record at offset {offset + at}")
        ledgers |= struct.iter_unpack(">qq", data[at + MAP_HEAD.size : at + 4 + size])
        at += 4 + size
    if not at:
        raise ValueError("the file ends there")
    return ledgers
