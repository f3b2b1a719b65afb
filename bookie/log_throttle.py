"""A limit on log lines that peers or outages can cause: one of each kind in a while, which counts those left out."""

import logging
import threading
import time
from collections.abc import Callable

__all__ = ["LogThrottle"]

PAUSE_S = 1.0


class LogThrottle(logging.Filter):
    """A filter for a logger. Records with the same text, before arguments are inserted, are of one kind. Any thread.

    Args:
        pause_s: The seconds between two records of one kind.
        clock: Returns the present time in seconds.
    """

    def __init__(self, pause_s: float = PAUSE_S, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._pause_s = pause_s
        self._clock = clock
        self._lock = threading.Lock()
        self._kinds: dict[str, tuple[float, int]] = {}  # when the next may be logged, and how many were left out

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to log the record; if others were left out before it, it gets their number as `left_out`."""
        now = self._clock()
        with self._lock:
            due, left_out = self._kinds.get(record.msg, (now, 0))
            self._kinds[record.msg] = (due, left_out + 1) if now < due else (now + self._pause_s, 0)
        if now >= due and left_out:
            record.__dict__["left_out"] = left_out
        return now >= due
