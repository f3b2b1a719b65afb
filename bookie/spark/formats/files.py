"""Finds the files of a scan by paths, directories and globs, and packs small files into one partition. Runs on the
driver.
"""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from glob import glob, has_magic
from pathlib import Path

from bookie.spark.options import Options
from bookie.storage.layout import current

__all__ = ["closed_log", "DataFile", "find_files", "finished", "packed"]

LOG_HEADER_BYTES = 20
MAP_AT, MAP_END = 8, 16


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file as it was when the scan was planned. `newest` says whether it has the highest id in its directory."""

    path: str
    id: int
    size: int
    newest: bool


def find_files(options: Options, suffix: str, wanted: Callable[[DataFile], bool]) -> list[DataFile]:
    """Return the files named `<hex id><suffix>`, sorted by path.

    A directory stands for its files and those in its subdirectory `current`. Files that are named themselves are
    always returned; those of directories and globs only if they are `wanted`.

    Raises:
        ConfigurationError: a path does not exist, or a file has another name.
    """
    name = re.compile(r"([0-9a-f]{1,16})" + re.escape(suffix))
    named: dict[Path, bool] = {}
    for text in _paths(options):
        path = Path(text)
        if has_magic(text):
            places = [Path(one) for one in sorted(glob(text, recursive=True))]  # noqa: PTH207  # Path.glob takes no absolute patterns
        elif path.is_dir():
            places = [path]
        elif path.exists():
            named[path.resolve()] = True
            continue
        else:
            raise options.wrong("path", f"{text} does not exist on this machine; name files, directories or globs")
        for one in _inside(places):
            if name.fullmatch(one.name):
                named.setdefault(one.resolve(), False)
    newest: dict[Path, int] = {}
    files: list[tuple[Path, int, bool]] = []
    for path, itself in named.items():
        found = name.fullmatch(path.name)
        if found is None:
            raise options.wrong("path", f"{path} is not named <hexadecimal id>{suffix}")
        if path.parent not in newest:
            ids = (name.fullmatch(other.name) for other in path.parent.iterdir())
            newest[path.parent] = max(int(one[1], 16) for one in ids if one)
        files.append((path, int(found[1], 16), itself))
    result = []
    for path, number, itself in sorted(files):
        file = DataFile(str(path), number, path.stat().st_size, newest[path.parent] == number)
        if itself or wanted(file):
            result.append(file)
    return result


def closed_log(path: str) -> bool:
    """Return whether the header of an entry log names a ledgers map, so that the file is complete.

    Raises:
        OSError: the file cannot be read.
    """
    with Path(path).open("rb") as file:
        header = file.read(LOG_HEADER_BYTES)
    return any(header[MAP_AT:MAP_END])


def finished(file: DataFile) -> bool:
    """Return whether an entry log is complete, so that nothing more is written to it.

    Raises:
        OSError: the file cannot be read.
    """
    return not file.newest or closed_log(file.path)


def packed(files: Iterable[DataFile], bytes_max: int) -> list[list[DataFile]]:
    """Return groups of consecutive files with at most `bytes_max` bytes each, but at least one file: files are not
    split.
    """
    partitions: list[list[DataFile]] = []
    size = bytes_max
    for file in files:
        if size + file.size > bytes_max:
            partitions.append([])
            size = 0
        partitions[-1].append(file)
        size += file.size
    return partitions


def _paths(options: Options) -> Sequence[str]:
    several = options.text("paths")
    if several:
        return [str(one) for one in json.loads(several)]
    return [options.required("path", "/data/ledgers/current, or load(path)")]


def _inside(places: Iterable[Path]) -> Iterable[Path]:
    for place in places:
        if place.is_dir():
            for directory in (place, current(place)):
                if directory.is_dir():
                    yield from directory.iterdir()
        else:
            yield place
