"""What is in the directories of a bookie: whose index, which kind of bookie ran last, and so whether there is one to
take over.

Main thread, at start, after the cookies are validated. Only names and the first bytes of files are read.
"""

import os
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bookie.durable import PRIVATE_DIRECTORY, replace_file
from bookie.errors import StartRefused
from bookie.storage.layout import journal_files
from bookie.storage.marks import readable_mark
from bookie.storage.takeover.idx import has_index_files
from bookie.storage.takeover.rocksdb import is_rocksdb
from bookie.storage.tools.log_files import entry_logs

__all__ = [
    "Disks",
    "INDEX_NAME",
    "last_journals",
    "note_journals",
    "require_no_java_since",
    "to_take_over",
    "was_taken_over",
]

INDEX_NAME = "locations.lmdb"
TAKEN_OVER = "taken-over"
"""A file in our index, with the newest journal file of each directory at the time of the takeover, and a checksum."""
NOTE_ROW = re.compile(rb"([0-9a-f]{1,16}) ([^\n]+)\n?")
JOURNAL_MAGIC = b"BKLG"
GROUP_MAGIC = b"BKGC"


@dataclass(frozen=True, slots=True)
class Disks:
    """The `current` directories of one store without an index of ours, and what a Java bookie left in them."""

    ledgers: Path
    index: Path
    rocksdb: Path | None
    idx: bool
    whole_journal: bool
    """No checkpoint ever succeeded, so the journals hold everything."""

    @property
    def target(self) -> Path:
        """The directory of our index."""
        return self.index / INDEX_NAME

    @property
    def databases(self) -> list[Path]:
        """The RocksDB databases whose locks a running Java bookie holds."""
        return [path for path in (self.index / "ledgers", self.index / "locations") if is_rocksdb(path)]


def last_journals(directories: Sequence[Path]) -> dict[str, tuple[int, bool]]:
    """Return, by journal directory, the id of the newest file and whether a bookie of ours wrote it. Directories
    without files are left out.
    """
    found = {}
    for directory in directories:
        for file_id in reversed(journal_files(directory)):
            with (directory / f"{file_id:x}.txn").open("rb") as file:
                head = file.read(12)
            if head[:4] == JOURNAL_MAGIC or any(head):
                found[str(directory)] = (file_id, head[8:12] == GROUP_MAGIC)
                break
    return found


def to_take_over(ledger_dirs: list[Path], index_dirs: list[Path], journal_dirs: list[Path]) -> list[Disks]:
    """Return the stores to take over: those that have data of a Java bookie and no index of ours.

    Raises StartRefused if our own index is lost, and for stores that cannot be taken over.
    """
    found = []
    ours_last = [path for path, (_, ours) in last_journals(journal_dirs).items() if ours]
    marks = [name for path in ledger_dirs for name in path.glob("lastMark*")]
    unmarked = bool(marks) and not any(mark.file_id for mark in map(readable_mark, marks) if mark is not None)
    for ledgers, index in zip(ledger_dirs, index_dirs, strict=True):
        if (index / INDEX_NAME / "data.mdb").exists():
            continue
        rocksdb = index / "ledgers" if is_rocksdb(index / "ledgers") else None
        idx = has_index_files(index)
        logs = entry_logs(ledgers)
        if not (logs or rocksdb or idx):
            continue
        if ours_last and logs:
            raise StartRefused(
                f"{index / INDEX_NAME} is missing, but {ledgers} has entry logs ({logs[0].path.name}), which cannot be "
                "read without it: restore it, rebuild it (bookie.storage.tools), or repair this bookie from its "
                "peers as after the loss of a disk"
            )
        found.append(Disks(ledgers, index, rocksdb, idx, unmarked))
    _refuse_shared_logs(found, ledger_dirs)
    return found


def _refuse_shared_logs(found: list[Disks], ledger_dirs: list[Path]) -> None:
    """Raise StartRefused for shared entry logs. Interleaved and Sorted storage put a ledger into any directory, but
    our stores look in one only.
    """
    if len(ledger_dirs) < 2 or all(disks.rocksdb for disks in found):
        return
    if any(disks.idx for disks in found) or not any(disks.databases for disks in found):
        raise StartRefused(
            f"{len(ledger_dirs)} ledgerDirectories of a Java bookie with Interleaved or Sorted storage share their "
            "entry logs, but this bookie keeps each ledger in one directory: start a new bookie on empty directories, "
            "let re-replication fill it, and then remove the Java bookie from the cluster"
        )


def require_no_java_since(index: Path, journal_dirs: list[Path]) -> None:
    """Raise StartRefused if a Java bookie ran after ours on these directories: our index lacks what it stored."""
    if not (index / "data.mdb").exists():
        return
    known = _read_taken_over(index, journal_dirs)
    for directory, (file_id, ours) in last_journals(journal_dirs).items():
        if not ours and file_id > known.get(directory, -1):
            raise StartRefused(
                f"{directory} has a journal of a Java bookie ({file_id:x}.txn) that ran here after this one, and "
                f"{index} lacks what it stored: move that index directory away, and the next start takes over the "
                "Java bookie's disks again"
            )


def was_taken_over(index: Path) -> bool:
    """Return whether this index of ours is complete and was built from a Java bookie's disks."""
    return (index / "data.mdb").exists() and (index / TAKEN_OVER).exists()


def _read_taken_over(index: Path, journal_dirs: list[Path]) -> dict[str, int]:
    """Return what `note_journals` left in an index; empty if it left nothing. Raises StartRefused if it is damaged."""
    note = index / TAKEN_OVER
    try:
        data = note.read_bytes()
    except FileNotFoundError:
        return {}
    rows = data.splitlines(keepends=True)
    found = [NOTE_ROW.fullmatch(row) for row in rows]
    # Notes of earlier versions have no checksum, nor have those that an operator writes.
    summed = bool(rows) and rows[-1].endswith(b" crc32\n")
    if None in found or (summed and int(rows[-1].split()[0], 16) != zlib.crc32(b"".join(rows[:-1]))):
        now = _note_rows(journal_dirs)
        lines = "".join(f"\n{line}" for line in now)
        raise StartRefused(
            f"{note} is damaged: it tells which journals there were when this bookie took over the disks of a Java "
            f"bookie. If no Java bookie ran here since, replace its text by these {len(now)} lines:{lines}\n"
            f"Otherwise move {index} away, and the next start takes over the Java bookie's disks again"
        )
    return {os.fsdecode(row[2]): int(row[1], 16) for row in found if row}


def _checksum(rows: bytes) -> bytes:
    # Eight digits, so that the file's size depends on the rows alone. Notes of earlier versions omit leading zeros.
    return b"%08x crc32\n" % zlib.crc32(rows)


def _note_rows(journal_dirs: list[Path]) -> list[str]:
    return [f"{file_id:x} {path}" for path, (file_id, _) in last_journals(journal_dirs).items()]


def note_journals(index: Path, journal_dirs: list[Path]) -> None:
    """Record which journals exist when an index is built, so that later ones of a Java bookie are noticed."""
    index.mkdir(PRIVATE_DIRECTORY, exist_ok=True)
    rows = b"".join(os.fsencode(f"{row}\n") for row in _note_rows(journal_dirs))
    replace_file(index / TAKEN_OVER, rows + _checksum(rows))
