"""The entry logs of a ledger directory by name. Nothing is opened."""

from pathlib import Path
from typing import NamedTuple

from bookie.storage.layout import HEX_NAME

__all__ = ["entry_logs", "LogFile"]


class LogFile(NamedTuple):
    """One entry log: its id, where it is, how large it is now."""

    log_id: int
    path: Path
    bytes: int


def entry_logs(directory: Path) -> list[LogFile]:
    """Every `<hex id>.log` of a `current` directory, by id ascending: in the order in which copies override."""
    found = []
    for path in directory.iterdir():
        name = HEX_NAME.match(path.name)
        if name and name[2] == "log" and path.is_file():
            found.append(LogFile(int(name[1], 16), path, path.stat().st_size))
    return sorted(found)
