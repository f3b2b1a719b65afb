"""Begin a new file in each journal after the replay of older ones. The start-up thread, before journal threads run."""

import logging
import time
from collections.abc import Sequence
from pathlib import Path

from bookie._fast.journal.commit import JournalCommitter
from bookie.storage.layout import journal_files, leftover_journal_files

__all__ = ["open_journals"]

log = logging.getLogger(__name__)


def open_journals(journals: Sequence[JournalCommitter], directories: Sequence[Path]) -> bool:
    """Return whether all journals have a new file; one on a full disk makes it as soon as there is space."""
    opened = True
    for journal, directory in zip(journals, directories, strict=True):
        for leftover in leftover_journal_files(directory):
            leftover.unlink()
        existing = journal_files(directory)
        first = existing[-1] + 1 if existing else int(time.time() * 1000) + 1
        if not journal.open(first, existing):
            opened = False
            log.error("the journal disk is full: no file can be created yet", extra={"directory": directory})
    return opened
