"""How far the present pass got, and when the last one was: the file `SCRUB` of the first ledger directory.

One line: layout, the pass's number, when it began (milliseconds since 1970; 0: it has ended), the ledger directory and
the log to go on with, bytes read and findings so far, when the last whole pass ended and how long it took, then the
CRC32C of all that. Replaced whole. Thread `scrub`.
"""

import logging
import time
from dataclasses import astuple, dataclass
from pathlib import Path

from bookie._fast.base.crc import crc32c
from bookie.durable import replace_file

__all__ = ["Cursor", "CursorFile", "NAME"]

NAME = "SCRUB"
LAYOUT = 1
log = logging.getLogger(__name__)


@dataclass(slots=True)
class Cursor:
    """Where a pass stands. The order is that of the file."""

    number: int = 0
    """Of the pass that runs, or of the last one; 0: there was none."""
    began_ms: int = 0
    """0: none is under way."""
    directory: int = 0
    log_id: int = 0
    """The first log that is still to be read."""
    bytes: int = 0
    found: int = 0
    ended_ms: int = 0
    """Of the last whole pass; of the first start where there was none."""
    took_ms: int = 0


class CursorFile:
    """`directory`: the `current` directory that keeps it; None: nothing is kept."""

    def __init__(self, directory: Path | None) -> None:
        self._file = directory / NAME if directory is not None else None

    def read(self) -> Cursor:
        """What was written last; a new one, with a word in the log, where that cannot be read."""
        fresh = Cursor(ended_ms=time.time_ns() // 1_000_000)
        if self._file is None:
            return fresh
        try:
            text, _, told = self._file.read_bytes().strip().rpartition(b",")
        except FileNotFoundError:
            return fresh
        except OSError as error:
            log.warning("the scrub's place cannot be read; it begins anew", extra={"file": self._file, "error": error})
            return fresh
        fields = text.split(b",")
        whole = all(field.isdigit() and len(field) <= 18 for field in fields)
        if told != b"%08x" % crc32c(text) or not whole or len(fields) != 9 or int(fields[0]) != LAYOUT:
            log.warning("the scrub's place is damaged; it begins anew", extra={"file": self._file})
            return fresh
        return Cursor(*map(int, fields[1:]))

    def write(self, cursor: Cursor) -> None:
        """As well as it goes: on a full disk the next start knows an older place."""
        if self._file is None:
            return
        text = b",".join(b"%d" % field for field in (LAYOUT, *astuple(cursor)))
        try:
            replace_file(self._file, text + b",%08x\n" % crc32c(text))
        except OSError as error:
            log.warning("the scrub's place cannot be written", extra={"file": self._file, "error": error})
