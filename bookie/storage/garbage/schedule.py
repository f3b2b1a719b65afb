"""When collections and compactions are due. A restart does not postpone them: a small file keeps the last times.

The file `GC_TIMES` in the first ledger directory has one line: the layout, then the times of the last cycle, minor
compaction, major compaction and check for over-replicated ledgers, in milliseconds since 1970. Thread `garbage`; any
thread may call `last_ms`.
"""

import logging
import time
from collections.abc import Mapping
from enum import Enum
from pathlib import Path

from bookie.durable import replace_file

__all__ = ["NAME", "Schedule", "Work"]

NAME = "GC_TIMES"
LAYOUT = "1"
FIRST_SHARE = 10
"""The first cycle after a start waits for at least one part in this many of the pause, to spare the start."""

log = logging.getLogger(__name__)


class Work(Enum):
    """Tasks with an interval of their own, in the order of the file."""

    CYCLE = "cycle"
    MINOR = "minor"
    MAJOR = "major"
    OVER_REPLICATED = "over-replicated"


class Schedule:
    """Decides when tasks are due. `intervals` are in seconds; without a file they count from now, and it is written."""

    def __init__(self, directory: Path | None, intervals: Mapping[Work, float]) -> None:
        self._file = directory / NAME if directory is not None else None
        self._intervals = dict(intervals)
        self._now_ms = _wall_ms()
        self._done_ms = self._read() or dict.fromkeys(Work, self._now_ms)
        self._since_start: set[Work] = set()
        now = time.monotonic()
        # A time in the future comes from a clock that was set back since.
        past = {work: max(0, self._now_ms - at) / 1000 for work, at in self._done_ms.items()}
        self._due = {work: now + max(0.0, self._intervals[work] - past[work]) for work in Work}
        self._due[Work.CYCLE] = max(self._due[Work.CYCLE], now + self._intervals[Work.CYCLE] / FIRST_SHARE)
        self._write()

    def due(self, work: Work) -> bool:
        """Return whether the task is due."""
        return time.monotonic() >= self._due[work]

    def pause_s(self) -> float:
        """Return the seconds until the next cycle."""
        return max(0.0, self._due[Work.CYCLE] - time.monotonic())

    def done(self, *works: Work) -> None:
        """Record that these tasks have just ended."""
        now, wall = time.monotonic(), _wall_ms()
        for work in works:
            self._due[work] = now + self._intervals[work]
            self._done_ms[work] = wall
            self._since_start.add(work)
        self._write()

    def last_ms(self, work: Work) -> int:
        """Return when the task last ended, in milliseconds since 1970; 0 if not since the start. Any thread."""
        return self._done_ms[work] if work in self._since_start else 0

    def _read(self) -> dict[Work, int] | None:
        if self._file is None:
            return None
        try:
            text = self._file.read_text()
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            log.warning("the file with the times of collections cannot be read; intervals count from now",
                        extra={"file": self._file, "error": error})  # fmt: skip
            return None
        layout, *times = text.strip().split(",")
        if layout != LAYOUT or len(times) != len(Work) or not all(at.isascii() and at.isdigit() for at in times):
            log.warning("the file with the times of collections is ignored, because it does not have layout 1",
                        extra={"file": self._file, "text": text[:60]})  # fmt: skip
            return None
        return {work: int(at) for work, at in zip(Work, times, strict=True)}

    def _write(self) -> None:
        """Write the file. A failure, such as a full disk, is only logged: the next start then uses older times."""
        if self._file is None:
            return
        line = ",".join([LAYOUT, *(str(self._done_ms[work]) for work in Work)]) + "\n"
        try:
            replace_file(self._file, line.encode())
        except OSError as error:
            log.warning("the times of collections cannot be written", extra={"file": self._file, "error": error})


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000
