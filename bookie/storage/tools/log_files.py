"""The entry logs of a ledger directory by name. No file is opened."""

import sys
from pathlib import Path
from typing import NamedTuple

from bookie.storage.layout import HEX_NAME

__all__ = ["entry_logs", "LogFile"]


class LogFile(NamedTuple):
    """One entry log: its id, its path, and its present size."""

    log_id: int
    path: Path
    bytes: int
    end: int = sys.maxsize
    """Records from this offset on are not to be taken."""


def entry_logs(directory: Path) -> list[LogFile]:
    """Return every `<hex id>.log` of a `current` directory in ascending order of id, in which later copies of an
    entry override earlier ones.
    """
    found = []
    for path in directory.iterdir():
        name = HEX_NAME.match(path.name)
        if name and name[2] == "log" and path.is_file():
            found.append(LogFile(int(name[1], 16), path, path.stat().st_size))
    return sorted(found)
