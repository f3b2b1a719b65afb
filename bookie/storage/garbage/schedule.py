"""When collections and compactions are due. Restarts postpone none: what was done last stands in a small file.

`GC_TIMES` in the first ledger directory is one line: layout, then milliseconds since 1970 of the last cycle, minor and
major compaction, and look for ledgers that live elsewhere. Thread `garbage`, but for the times that `last_ms` tells.
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
"""After a start the first cycle waits at least so manieth part of the pause: the start has its own work."""

log = logging.getLogger(__name__)


class Work(Enum):
    """What has a time of its own; the order is that of the file."""

    CYCLE = "cycle"
    MINOR = "minor"
    MAJOR = "major"
    OVER_REPLICATED = "over-replicated"


class Schedule:
    """`intervals` in seconds. Without a file everything counts from now on, which is written down at once."""

    def __init__(self, directory: Path | None, intervals: Mapping[Work, float]) -> None:
        self._file = directory / NAME if directory is not None else None
        self._intervals = dict(intervals)
        self._now_ms = _wall_ms()
        self._done_ms = self._read() or dict.fromkeys(Work, self._now_ms)
        self._since_start: set[Work] = set()
        now = time.monotonic()
        # A time to come is one of a clock that was set back.
        past = {work: max(0, self._now_ms - at) / 1000 for work, at in self._done_ms.items()}
        self._due = {work: now + max(0.0, self._intervals[work] - past[work]) for work in Work}
        self._due[Work.CYCLE] = max(self._due[Work.CYCLE], now + self._intervals[Work.CYCLE] / FIRST_SHARE)
        self._write()

    def due(self, work: Work) -> bool:
        """Whether its time has come."""
        return time.monotonic() >= self._due[work]

    def pause_s(self) -> float:
        """Until the next cycle."""
        return max(0.0, self._due[Work.CYCLE] - time.monotonic())

    def done(self, *works: Work) -> None:
        """They have just ended."""
        now, wall = time.monotonic(), _wall_ms()
        for work in works:
            self._due[work] = now + self._intervals[work]
            self._done_ms[work] = wall
            self._since_start.add(work)
        self._write()

    def last_ms(self, work: Work) -> int:
        """Milliseconds since 1970 when it ended; 0: not since the start. Any thread."""
        return self._done_ms[work] if work in self._since_start else 0

    def _read(self) -> dict[Work, int] | None:
        if self._file is None:
            return None
        try:
            text = self._file.read_text()
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            log.warning("the times of collections cannot be read; they count from now on",
                        extra={"file": self._file, "error": error})  # fmt: skip
            return None
        layout, *times = text.strip().split(",")
        if layout != LAYOUT or len(times) != len(Work) or not all(at.isascii() and at.isdigit() for at in times):
            log.warning("the times of collections are passed over: not layout 1",
                        extra={"file": self._file, "text": text[:60]})  # fmt: skip
            return None
        return {work: int(at) for work, at in zip(Work, times, strict=True)}

    def _write(self) -> None:
        """As well as it goes: on a full disk the next start knows an older time."""
        if self._file is None:
            return
        line = ",".join([LAYOUT, *(str(self._done_ms[work]) for work in Work)]) + "\n"
        try:
            replace_file(self._file, line.encode())
        except OSError as error:
            log.warning("the times of collections cannot be written", extra={"file": self._file, "error": error})


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000
