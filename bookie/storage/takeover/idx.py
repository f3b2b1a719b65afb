"""Index files `<hex ledger id>.idx` of Java's Interleaved and Sorted storage. Only their headers are read, which
describe a ledger.

The locations after the header are not needed, because a scan of the entry logs finds the entries. Pure functions over
files that nothing writes; nothing is changed.
"""

import logging
import os
import re
import struct
from collections.abc import Iterator
from pathlib import Path

from bookie._fast.index.view import Ledger

__all__ = ["has_index_files", "index_files", "parse_header", "read_ledgers"]

log = logging.getLogger(__name__)

MAGIC = b"BKLE"
VERSION_MAX = 1
HEADER_BYTES = 1024
LAC_BYTES_MIN = 16
FENCED = 0x1
I32 = struct.Struct(">i")
NAME = re.compile(r"^([0-9a-f]{1,16})\.idx$")
FOLDER = re.compile(r"^[0-9a-f]{1,2}$")


def parse_header(ledger: int, data: bytes) -> Ledger:
    """Parse the header of a ledger's index file. Raises ValueError, whose text continues a sentence about it."""
    if data[:4] != MAGIC:
        raise ValueError(f"starts with {data[:4]!r} instead of {MAGIC!r}")
    version, at = _number(data, 4)
    if not 0 <= version <= VERSION_MAX:
        raise ValueError(f"has version {version}; the known versions are 0 and {VERSION_MAX}")
    key, at = _bytes(data, at, "master key")
    state, at = _number(data, at)
    lac = b""
    if version >= 1:
        lac, at = _bytes(data, at, "explicit LAC")
        if lac and len(lac) < LAC_BYTES_MIN:
            raise ValueError(f"has an explicit LAC of {len(lac)} bytes, but at least {LAC_BYTES_MIN} are needed")
    return Ledger(ledger, key, bool(state & FENCED), False, lac)


def index_files(current: Path) -> Iterator[tuple[int, Path]]:
    """Yield (ledger id, path) of every index file, two levels of hexadecimal folders below a `current` directory."""
    for folder in _folders(current):
        for below in _folders(folder):
            for path in sorted(below.iterdir()):
                if name := NAME.match(path.name):
                    yield int(name[1], 16), path


def has_index_files(current: Path) -> bool:
    """Return whether there is at least one index file."""
    return next(index_files(current), None) is not None


def read_ledgers(current: Path) -> dict[int, Ledger]:
    """Return the ledgers of all index files.

    A header is on disk before the journal mark passes the ledger's creation, so the journal has everything about a
    ledger whose file is empty. A ledger with a damaged header becomes fenced with any key: it can be read and closed,
    but not written.
    """
    found: dict[int, Ledger] = {}
    for ledger, path in index_files(current):
        with path.open("rb") as file:
            data = file.read(HEADER_BYTES)
        if not data:
            continue
        try:
            found[ledger] = parse_header(ledger, data)
        except ValueError as error:
            log.warning("an index file is damaged; its ledger is fenced file=%s ledger=%d: it %s", path, ledger, error)
            found[ledger] = Ledger(ledger, b"", True, False, b"")
    return found


def _folders(directory: Path) -> list[Path]:
    with os.scandir(directory) as entries:
        return sorted(Path(entry.path) for entry in entries if entry.is_dir() and FOLDER.match(entry.name))


def _number(data: bytes, at: int) -> tuple[int, int]:
    if len(data) - at < I32.size:
        raise ValueError(f"ends at byte {len(data)}, inside its header")
    return I32.unpack_from(data, at)[0], at + I32.size


def _bytes(data: bytes, at: int, what: str) -> tuple[bytes, int]:
    size, at = _number(data, at)
    if not 0 <= size <= len(data) - at:
        raise ValueError(f"has a {what} of {size} bytes, but only {len(data) - at} are left in its header")
    return data[at : at + size], at + size
