"""The file `BOOKIE_STATUS`, which keeps over a restart whether a bookie was read-only, and whether an operator
wanted that. At start, and any thread.

It has one line in each ledger directory, as Apache BookKeeper writes it: `1,READ_ONLY,<ms since 1970>,<set by
hand>`.
"""

import logging
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from bookie.durable import replace_file

__all__ = ["NAME", "read", "Status", "StatusFiles"]

NAME = "BOOKIE_STATUS"
LAYOUT = "1"
MODES = {"READ_ONLY": True, "READ_WRITE": False}

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, order=True)
class Status:
    """The contents of a status file. Of several the newest counts."""

    updated_ms: int
    read_only: bool
    manual: bool

    def line(self) -> str:
        mode = "READ_ONLY" if self.read_only else "READ_WRITE"
        return f"{LAYOUT},{mode},{self.updated_ms},{'true' if self.manual else 'false'}\n"


def read(directories: Iterable[Path]) -> Status | None:
    """Return the newest status in these (`current`) directories, or None. Unreadable files are logged."""
    found = [status for path in directories if (status := _read_one(path / NAME)) is not None]
    return max(found, default=None)


def _read_one(file: Path) -> Status | None:
    try:
        text = file.read_text()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        log.warning("the status file cannot be read and is ignored", extra={"file": file, "error": error})
        return None
    parts = [part.strip() for part in text.partition("\n")[0].split(",")]
    known = len(parts) in (3, 4) and parts[0] == LAYOUT and parts[1] in MODES
    if not (known and parts[2].isascii() and parts[2].isdigit() and len(parts[2]) <= 18):
        log.warning("the status file is ignored: it does not have layout 1", extra={"file": file, "text": text[:60]})
        return None
    read_only = MODES[parts[1]]
    manual = read_only and (len(parts) == 3 or parts[3] == "true")  # older files lack the field; it was set by hand
    return Status(int(parts[2]), read_only, manual)


class StatusFiles:
    """Writes the mode to every directory, as far as possible, because a full or failing disk may be the reason for
    it.

    Failed writes are retried by `again`.
    """

    def __init__(self, directories: Iterable[Path]) -> None:
        self._directories = tuple(directories)
        self._lock = threading.Lock()  # guards what follows; only the writes happen while it is held
        self._last: Status | None = None
        self._missing: list[Path] = []

    def keep(self, reasons: frozenset[str]) -> None:
        """Record the reasons for which the bookie is read-only; none means writable."""
        read_only, manual = bool(reasons), "operator" in reasons
        with self._lock:
            if self._last is not None and (self._last.read_only, self._last.manual) == (read_only, manual):
                return
            self._last = Status(int(time.time() * 1000), read_only, manual)
            self._missing = [one for one in self._directories if not self._write(one, self._last, said=False)]

    def again(self) -> None:
        """Retry the directories that lack the present mode."""
        with self._lock:
            if self._last is None:
                return
            status = self._last
            self._missing = [one for one in self._missing if not self._write(one, status, said=True)]

    @staticmethod
    def _write(directory: Path, status: Status, *, said: bool) -> bool:
        """Write one file and return whether that succeeded. `said` means that a failure has been logged already."""
        try:
            replace_file(directory / NAME, status.line().encode())
        except OSError as error:
            if not said:
                facts = {"directory": directory, "error": error}
                log.warning("the status file cannot be written; each check of the disks tries again", extra=facts)
            return False
        if said:
            log.info("the status file was written at last", extra={"directory": directory})
        return True
