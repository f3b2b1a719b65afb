"""A quick check for damaged files at start. Each damaged file is logged with its remedy; none is changed. Main
thread.

The check reads the headers of entry logs and of the index, and the pages that a truncated index still references. The
complete checks are `check_logs`, `verify_index` and `check_index` of `bookie.storage.tools`.
"""

import logging
import stat
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from bookie.errors import StartRefused
from bookie.storage.layout import HEX_NAME
from bookie.storage.tools.verify_index import is_whole, verify_index

__all__ = ["bad_logs", "BadFile", "has_sound_index", "refuse_meta_pages", "tell_bad_logs"]

HEADER = struct.Struct(">4siqi")
HEADER_BYTES = 1024
MAP_HEAD = struct.Struct(">iqqi")
MAGIC, VERSION = b"BKLO", 1
REPORTED_MAX = 100
BAD_META_PAGE = (-30793, -30794)
"""MDB_INVALID and MDB_VERSION_MISMATCH."""

log = logging.getLogger(__name__)


class BadFile(NamedTuple):
    """A file that has the name of an entry log but is not one."""

    path: Path
    problem: str


def bad_logs(directory: Path) -> Iterator[BadFile]:
    """Yield the files of a `current` directory that have the name of an entry log but cannot be one, sorted by name.
    Reads of their entries are answered with EIO.
    """
    for path in sorted(directory.iterdir()):
        name = HEX_NAME.match(path.name)
        if name and name[2] == "log" and (problem := _problem(path)):
            yield BadFile(path, problem)


def _problem(path: Path) -> str:
    """Return what is wrong with the header of an entry log, or the position of its ledgers map, or ""."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            return "it is not a regular file"
        with path.open("rb") as file:
            head = file.read(HEADER.size)
            magic, version, at, count = HEADER.unpack(head.ljust(HEADER.size, b"\0"))
            if 0 < at <= status.st_size - MAP_HEAD.size:
                file.seek(at)
            map_head = file.read(MAP_HEAD.size)
    except OSError as error:
        return f"it cannot be read ({error.strerror})"
    if status.st_size < HEADER_BYTES:
        return f"it has {status.st_size} bytes, which is less than a header"
    if not any(head):
        return "its header is all zeros"
    if magic != MAGIC:
        return f"it begins with {magic!r} instead of {MAGIC!r}: another program wrote it"
    if not 0 <= version <= VERSION:
        return f"it has version {version}; the highest known version is {VERSION}"
    return _map_problem(at, count, status.st_size, map_head) if at else ""


def _map_problem(at: int, count: int, size: int, map_head: bytes) -> str:
    if at < HEADER_BYTES or at > size - MAP_HEAD.size:
        return (
            f"its header places the ledgers map at offset {at}, but the file has {size} bytes: the file is truncated, "
            "or the header is wrong"
        )
    length, ledger, entry, ledgers = MAP_HEAD.unpack(map_head)
    if (ledger, entry) != (-1, -2) or not 0 <= ledgers <= count or length != 20 + 16 * ledgers:
        return f"there is no ledgers map at offset {at}, where its header places it"
    return ""


def tell_bad_logs(directory: Path) -> int:
    """Log one line for each damaged entry log, up to a limit, and return how many there are."""
    found = 0
    for bad in bad_logs(directory):
        found += 1
        if found <= REPORTED_MAX:
            log.error(
                "an entry log is damaged",
                extra={
                    "file": bad.path,
                    "problem": bad.problem,
                    "remedy": "restore the file; bookie.storage.tools.check_logs lists its records, and check_index"
                    " what the index expects; until then clients read its entries from other replicas",
                },
            )
    if found > REPORTED_MAX:
        log.error("more entry logs are damaged", extra={"directory": directory, "more": found - REPORTED_MAX})
    return found


def has_sound_index(index: Path) -> bool:
    """Return whether the directory holds an index.

    Raises StartRefused if the file of the index cannot be read, is not an LMDB file, or lacks pages that it
    references: LMDB would trust such a file, and the process would crash later.
    """
    path = index / "data.mdb"
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise _refused(f"{path}: it is not a regular file")
        if is_whole(index):
            return True
    except FileNotFoundError:
        return False
    except OSError as error:
        raise _refused(f"{path}: it cannot be read ({error.strerror})") from None
    found = verify_index(index)
    if not found.sound:
        raise _refused(found.problems[0].removesuffix("; rebuild the index"))
    return True


def refuse_meta_pages(index: Path, error: OSError) -> None:
    """Raise StartRefused if LMDB found damage in a meta page, for which it names no remedy."""
    if error.errno in BAD_META_PAGE:
        raise _refused(f"{index / 'data.mdb'}: one of its two meta pages is damaged") from error


def _refused(problem: str) -> StartRefused:
    return StartRefused(
        f"{problem}; the index cannot be used: restore it, or rebuild it from the entry logs"
        " (bookie.storage.tools.rebuild_index); nothing was changed"
    )
