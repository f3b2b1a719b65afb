"""Files that a start finds damaged: each is named in one line with its remedy, none is touched. Main thread, at start.

A quick look only: the heads of entry logs and of the index, and what an index that is too short still reaches. All of a
file is looked at by `check_logs`, `verify_index` and `check_index` of `bookie.storage.tools`.
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

__all__ = ["bad_logs", "BadFile", "require_sound_index", "tell_bad_logs"]

HEADER = struct.Struct(">4siqi")
HEADER_BYTES = 1024
MAP_HEAD = struct.Struct(">iqqi")
MAGIC, VERSION = b"BKLO", 1
TOLD_MOST = 100

log = logging.getLogger(__name__)


class BadFile(NamedTuple):
    """An entry log that is not what its name says."""

    path: Path
    problem: str


def bad_logs(directory: Path) -> Iterator[BadFile]:
    """Entry logs of a `current` directory that cannot be one, by name. Their entries, if any, are answered with EIO."""
    for path in sorted(directory.iterdir()):
        name = HEX_NAME.match(path.name)
        if name and name[2] == "log" and (problem := _problem(path)):
            yield BadFile(path, problem)


def _problem(path: Path) -> str:
    """What is wrong with the head of an entry log, or with where it says that its ledgers map lies; "" if nothing."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            return "it is no file"
        with path.open("rb") as file:
            head = file.read(HEADER.size)
            magic, version, at, count = HEADER.unpack(head.ljust(HEADER.size, b"\0"))
            if 0 < at <= status.st_size - MAP_HEAD.size:
                file.seek(at)
            map_head = file.read(MAP_HEAD.size)
    except OSError as error:
        return f"it cannot be read ({error.strerror})"
    if status.st_size < HEADER_BYTES:
        return f"it has {status.st_size} bytes, fewer than a header"
    if not any(head):
        return "its header is zeros"
    if magic != MAGIC:
        return f"it begins with {magic!r}, not {MAGIC!r}: something else wrote it"
    if not 0 <= version <= VERSION:
        return f"it is of version {version}, known are those up to {VERSION}"
    return _map_problem(at, count, status.st_size, map_head) if at else ""


def _map_problem(at: int, count: int, size: int, map_head: bytes) -> str:
    if at < HEADER_BYTES or at > size - MAP_HEAD.size:
        return f"its ledgers map is to lie at {at}, but the file has {size} bytes: it is cut off, or the header lies"
    length, ledger, entry, ledgers = MAP_HEAD.unpack(map_head)
    if (ledger, entry) != (-1, -2) or not 0 <= ledgers <= count or length != 20 + 16 * ledgers:
        return f"there is no ledgers map at {at}, where the header says"
    return ""


def tell_bad_logs(directory: Path) -> int:
    """One line in the log for each, as far as they can be told; how many there are."""
    found = 0
    for bad in bad_logs(directory):
        found += 1
        if found <= TOLD_MOST:
            log.error(
                "damaged entry log",
                extra={
                    "file": bad.path,
                    "problem": bad.problem,
                    "remedy": "restore it; what is left of it tells bookie.storage.tools.check_logs, and what the index"
                    " expects of it check_index; clients read its entries from other replicas meanwhile",
                },
            )
    if found > TOLD_MOST:
        log.error("more damaged entry logs", extra={"directory": directory, "more": found - TOLD_MOST})
    return found


def require_sound_index(index: Path) -> None:
    """StartRefused when the LMDB file in `index` is none, cannot be read, or lacks pages that it needs: LMDB would
    trust it, and the process end later. A directory without the file is fine.
    """
    path = index / "data.mdb"
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise _refused(f"{path}: it is no file")
        if status.st_size == 0 or is_whole(index):  # empty: a process ended while it made the file
            return
    except FileNotFoundError:
        return
    except OSError as error:
        raise _refused(f"{path}: it cannot be read ({error.strerror})") from None
    found = verify_index(index)
    if not found.sound:
        raise _refused(found.problems[0].removesuffix("; rebuild the index"))


def _refused(problem: str) -> StartRefused:
    return StartRefused(
        f"{problem}; the index cannot be used: put it back, or rebuild it from the entry logs"
        " (bookie.storage.tools.rebuild_index); nothing was changed"
    )
