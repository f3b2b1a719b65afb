"""Limits on the journal backlog: how many bytes of journal files may lie above the lowest mark of a ledger directory.

A directory whose disk is full, or whose index is being repaired, keeps its mark, and with it all journal files from
that mark on.
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
"""Unless a limit is configured, all journals together may take one part in this many of a disk."""
FILES_MOST = 2000
"""Half the number of files that a journal can tell apart."""


class BacklogLimits(NamedTuple):
    """The limits of one journal, in bytes of whole files."""

    hurry_bytes: int
    """From here on a checkpoint begins early, and directories that cannot be flushed are journaled again."""
    most_bytes: int
    """From here on the journal takes no adds."""


def backlog_bytes_least(storage: StorageSettings, journal: JournalSettings) -> int:
    """Return the bytes that ordinary operation needs: twice the write caches, and some files. A lower limit would
    refuse adds needlessly.
    """
    return 2 * storage.write_cache_bytes + 4 * journal.file_bytes_max


def backlog_limits(storage: StorageSettings, journal: JournalSettings, directory: Path) -> BacklogLimits:
    """Return the limits of the journal in this existing directory, which depend on its disk unless configured."""
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
    """Logs which directories hold back journal files. One thread at a time."""

    def __init__(self) -> None:
        self._carried: dict[str, int] = {}
        self._at_limit: set[str] = set()

    def tell(
        self, stores: Iterable[tuple[str, Mapping[str, int]]], journals: Iterable[tuple[str, Mapping[str, int]]]
    ) -> None:
        """Log one line for each directory that was written to the journal again since the last call, and for each
        journal that reached its limit or takes adds again. Both arguments give directories with their counters.
        """
        stores = list(stores)
        for directory, stats in stores:
            if stats["carry_overs"] > self._carried.get(directory, 0):
                facts = {"directory": directory, "times": stats["carry_overs"], "bytes": stats["carried_bytes"]}
                remedy = "free space on its disk, or find what else prevents the flush: until then its adds are refused"
                log.warning(
                    "entries of a ledger directory that cannot be flushed were written to the journal again, so that "
                    "old journal files can be deleted",
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
        remedy = (
            "free space on the disk of that directory, or find out why it is slow; journalMaxBacklogMB is the limit"
        )
        log.error(
            "the journal has reached its backlog limit and takes no adds until a ledger directory is flushed",
            extra={**facts, "remedy": remedy},
        )
