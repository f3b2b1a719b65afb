"""Log lines that peers can bring about as often as they like: one a second of each kind, and how many were left out."""

import logging
import threading
import time
from collections.abc import Callable

__all__ = ["LogThrottle"]

PAUSE_S = 1.0


class LogThrottle(logging.Filter):
    """A filter for a logger. Records of the same text, before arguments are filled in, are of one kind. Any thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._lock = threading.Lock()
        self._kinds: dict[str, tuple[float, int]] = {}  # when the next one may be logged, and how many were left out

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to log it; then it has `left_out`, unless that is none."""
        now = self._clock()
        with self._lock:
            due, left_out = self._kinds.get(record.msg, (now, 0))
            self._kinds[record.msg] = (due, left_out + 1) if now < due else (now + PAUSE_S, 0)
        if now >= due and left_out:
            record.__dict__["left_out"] = left_out
        return now >= due
