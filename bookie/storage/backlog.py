"""How far checkpoints may lag behind a journal: what its files may hold behind the lowest mark of a ledger directory.

A directory whose disk is full, or whose index has to be mended, keeps its mark, and all journal files from there on.
"""

import logging
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from bookie.storage.settings import JournalSettings, StorageSettings

__all__ = ["backlog_bytes_least", "backlog_limits", "BacklogLimits", "BacklogNews"]

log = logging.getLogger(__name__)

DISK_SHARE = 4
"""All journals together may take this part of a disk, one over it, where nothing is configured."""
FILES_MOST = 2000
"""Half of the files that a journal tells apart."""


class BacklogLimits(NamedTuple):
    """Of one journal, in bytes of whole files."""

    hurry_bytes: int
    """A checkpoint begins, and who cannot be flushed is journaled again."""
    most_bytes: int
    """No more adds."""


def backlog_bytes_least(storage: StorageSettings, journal: JournalSettings) -> int:
    """What ordinary operation needs: the write caches twice, and some files. Less would refuse adds for nothing."""
    return 2 * storage.write_cache_bytes + 4 * journal.file_bytes_max


def backlog_limits(storage: StorageSettings, journal: JournalSettings, directory: Path) -> BacklogLimits:
    """Of the journal in this directory, which exists. Its disk is asked unless the limit is configured."""
    least = backlog_bytes_least(storage, journal)
    most = journal.backlog_bytes_max
    if not most:
        disk = os.statvfs(directory)
        most = max(least, disk.f_blocks * disk.f_frsize // DISK_SHARE // len(journal.directories))
    most = min(most, FILES_MOST * journal.file_bytes_max)
    cache = storage.write_cache_bytes // len(storage.ledger_directories)
    hurry = max(4 * cache, 2 * storage.write_cache_bytes, 4 * journal.file_bytes_max)
    return BacklogLimits(min(most // 2, hurry), most)


class BacklogNews:
    """What the log is told of directories that hold back journals. One thread at a time."""

    def __init__(self) -> None:
        self._carried: dict[str, int] = {}
        self._at_limit: set[str] = set()

    def tell(
        self, stores: Iterable[tuple[str, Mapping[str, int]]], journals: Iterable[tuple[str, Mapping[str, int]]]
    ) -> None:
        """One line for each directory that was journaled again since the last call, and for each journal that takes no
        more adds, or takes them again. Both: directory and its counters.
        """
        stores = list(stores)
        for directory, stats in stores:
            if stats["carry_overs"] > self._carried.get(directory, 0):
                facts = {"directory": directory, "times": stats["carry_overs"], "bytes": stats["carried_bytes"]}
                remedy = "make room on its disk, or see what else keeps its flush: until then its adds are refused"
                log.warning(
                    "a ledger directory that cannot be flushed was journaled again, so that journal files can go",
                    extra={**facts, "remedy": remedy},
                )
            self._carried[directory] = stats["carry_overs"]
        for journal, stats in journals:
            self._tell_limit(journal, stats, stores)

    def _tell_limit(self, journal: str, stats: Mapping[str, int], stores: list[tuple[str, Mapping[str, int]]]) -> None:
        if bool(stats["at_limit"]) == (journal in self._at_limit):
            return
        facts: dict[str, object] = {"journal": journal, "bytes": stats["backlog_bytes"]}
        if not stats["at_limit"]:
            self._at_limit.discard(journal)
            log.warning("the journal takes adds again", extra=facts)
            return
        self._at_limit.add(journal)
        directory, most = max(stores, key=lambda one: one[1].get("held_back_bytes", 0))
        facts |= {"directory": directory, "flushed_s_ago": most.get("mark_age_s", 0)}
        remedy = "make room on the disk of that directory, or see why it is slow; journalMaxBacklogMB is the limit"
        log.error(
            "a journal holds too much for a ledger directory that is not flushed, and takes no more adds",
            extra={**facts, "remedy": remedy},
        )
