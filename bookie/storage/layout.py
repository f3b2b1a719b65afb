"""The names of a bookie's files, and what can be learnt from the names alone. Nothing here changes a file."""

import re
from pathlib import Path

from bookie.errors import StartRefused

__all__ = [
    "current",
    "INDEX_NAME",
    "journal_files",
    "leftover_journal_files",
    "next_log_id",
]

INDEX_NAME = "locations.lmdb"
HEX_NAME = re.compile(r"^([0-9a-f]{1,16})\.(txn|log)$")
COMPACTED_NAME = re.compile(r"^([0-9a-f]{1,16})\.log\.(?:compacting|([0-9a-f]{1,16})\.compacted)$")
LOG_ID_MAX = 0x7FFFFFFF


def current(directory: Path) -> Path:
    """Return the subdirectory of a configured directory in which the bookie keeps its files."""
    return directory / "current"


def journal_files(directory: Path) -> list[int]:
    """Return the ids of the journal files in a `current` directory, in ascending order."""
    names = (HEX_NAME.match(path.name) for path in directory.iterdir())
    return sorted(int(name[1], 16) for name in names if name and name[2] == "txn")


def leftover_journal_files(directory: Path) -> list[Path]:
    """Return files that were being prepared, or kept for reuse, when the process ended. They hold no records."""
    return [path for path in directory.iterdir() if path.suffix in {".preparing", ".spare"}]


def next_log_id(directory: Path) -> int:
    """Return an id above every entry log id that was ever used here, according to `lastId`, logs and leftovers of
    compaction.

    Raises StartRefused if the ids are used up or `lastId` is not a number.
    """
    highest = -1
    for path in directory.iterdir():
        if (name := HEX_NAME.match(path.name)) and name[2] == "log":
            highest = max(highest, int(name[1], 16))
        elif name := COMPACTED_NAME.match(path.name):
            highest = max(highest, *(int(part, 16) for part in name.groups() if part))
    try:
        highest = max(highest, int((directory / "lastId").read_text().strip(), 16))
    except FileNotFoundError:
        pass
    except ValueError:
        if highest < 0:
            raise StartRefused(f"{directory / 'lastId'} is not a hexadecimal entry log id; remove the file") from None
    if highest >= LOG_ID_MAX:
        raise StartRefused(f"{directory} has used all entry log ids; start a new bookie and decommission this one")
    return highest + 1
