"""How far the present pass got, and when the last one ended: the file `SCRUB` of the first ledger directory.

It has one line: the layout; the number of the pass; when it began (milliseconds since 1970; 0 if it has ended); the
ledger directory and the log to continue with; bytes read and findings so far; when the last complete pass ended and
how long it took; and the CRC32C of everything before. The file is replaced as a whole. Thread `scrub`.
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
    """The position of a pass. The fields have the order of the file."""

    number: int = 0
    """The number of the present pass, or of the last one; 0 if there was none."""
    began_ms: int = 0
    """0 if no pass is under way."""
    directory: int = 0
    log_id: int = 0
    """The first log that is still to be read."""
    bytes: int = 0
    found: int = 0
    ended_ms: int = 0
    """When the last complete pass ended, or when the bookie first started if there was none."""
    took_ms: int = 0


class CursorFile:
    """The file with the cursor. `directory` is the `current` directory that holds it; None keeps nothing."""

    def __init__(self, directory: Path | None) -> None:
        self._file = directory / NAME if directory is not None else None

    def read(self) -> Cursor:
        """Return the cursor that was written last, or a new one if it cannot be read, which is logged."""
        fresh = Cursor(ended_ms=time.time_ns() // 1_000_000)
        if self._file is None:
            return fresh
        try:
            text, _, checksum = self._file.read_bytes().strip().rpartition(b",")
        except FileNotFoundError:
            return fresh
        except OSError as error:
            log.warning(
                "the position of the scrub cannot be read; the scrub begins from the start",
                extra={"file": self._file, "error": error},
            )
            return fresh
        fields = text.split(b",")
        whole = all(field.isdigit() and len(field) <= 18 for field in fields)
        if checksum != b"%08x" % crc32c(text) or not whole or len(fields) != 9 or int(fields[0]) != LAYOUT:
            log.warning(
                "the position of the scrub is damaged; the scrub begins from the start", extra={"file": self._file}
            )
            return fresh
        return Cursor(*map(int, fields[1:]))

    def write(self, cursor: Cursor) -> None:
        """Write the cursor. After a failure, which is only logged, the next start uses an older position."""
        if self._file is None:
            return
        text = b",".join(b"%d" % field for field in (LAYOUT, *astuple(cursor)))
        try:
            replace_file(self._file, text + b",%08x\n" % crc32c(text))
        except OSError as error:
            log.warning("the position of the scrub cannot be written", extra={"file": self._file, "error": error})
