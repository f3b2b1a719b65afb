"""`BOOKIE_STATUS`: whether a bookie was read-only, and by whose wish, kept over a restart. Start, and any thread.

One line in each ledger directory, as Apache BookKeeper writes it: `1,READ_ONLY,<ms since 1970>,<set by hand>`.
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
    """What a file tells. Of several the newest counts."""

    updated_ms: int
    read_only: bool
    manual: bool

    def line(self) -> str:
        mode = "READ_ONLY" if self.read_only else "READ_WRITE"
        return f"{LAYOUT},{mode},{self.updated_ms},{'true' if self.manual else 'false'}\n"


def read(directories: Iterable[Path]) -> Status | None:
    """The newest status in these (`current`) directories; None when no file can be made out, each said in one line."""
    found = [status for path in directories if (status := _read_one(path / NAME)) is not None]
    return max(found, default=None)


def _read_one(file: Path) -> Status | None:
    try:
        text = file.read_text()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        log.warning("the status file cannot be read and is passed over", extra={"file": file, "error": error})
        return None
    parts = [part.strip() for part in text.partition("\n")[0].split(",")]
    known = len(parts) in (3, 4) and parts[0] == LAYOUT and parts[1] in MODES
    if not (known and parts[2].isascii() and parts[2].isdigit() and len(parts[2]) <= 18):
        log.warning("the status file is passed over: not layout 1", extra={"file": file, "text": text[:60]})
        return None
    read_only = MODES[parts[1]]
    manual = read_only and (len(parts) == 3 or parts[3] == "true")  # older files do not say: by hand
    return Status(int(parts[2]), read_only, manual)


class StatusFiles:
    """Writes the mode into every directory, as well as it goes: a full or failing disk is what it may be about.

    Where it did not go it is tried again.
    """

    def __init__(self, directories: Iterable[Path]) -> None:
        self._directories = tuple(directories)
        self._lock = threading.Lock()  # guards what follows; nothing is called with it but the writes
        self._last: Status | None = None
        self._missing: list[Path] = []

    def keep(self, reasons: frozenset[str]) -> None:
        """The bookie is read-only for these reasons; none: writable."""
        read_only, manual = bool(reasons), "operator" in reasons
        with self._lock:
            if self._last is not None and (self._last.read_only, self._last.manual) == (read_only, manual):
                return
            self._last = Status(int(time.time() * 1000), read_only, manual)
            self._missing = [one for one in self._directories if not self._write(one, self._last, said=False)]

    def again(self) -> None:
        """Try the directories that lack the present mode."""
        with self._lock:
            if self._last is None:
                return
            status = self._last
            self._missing = [one for one in self._missing if not self._write(one, status, said=True)]

    @staticmethod
    def _write(directory: Path, status: Status, *, said: bool) -> bool:
        """Whether it went; `said`: the log has told that it did not."""
        try:
            replace_file(directory / NAME, status.line().encode())
        except OSError as error:
            if not said:
                facts = {"directory": directory, "error": error}
                log.warning("the status file cannot be written; it is tried again with each check", extra=facts)
            return False
        if said:
            log.info("the status file is written after all", extra={"directory": directory})
        return True
