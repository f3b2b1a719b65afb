"""Watches how full the ledger directories are, and says when the bookie must become read-only or may write again.

One thread, `disks`. The decision is a pure function of usages and settings; the clock is the interval, the usage a
callable, so that tests plan both.
"""

import logging
import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from bookie.server.settings import DiskSettings

__all__ = ["DiskMonitor", "is_full", "usage"]

log = logging.getLogger(__name__)


def usage(directory: Path) -> float:
    """The fraction of the file system that an ordinary user cannot write any more, 0 to 1."""
    status = os.statvfs(directory)
    return 1 - status.f_bavail / status.f_blocks if status.f_blocks else 0.0


def is_full(usages: Sequence[float], settings: DiskSettings, *, was_full: bool) -> bool:
    """Whether the bookie should be read-only. Once it was full, usage must fall below the low mark first."""
    mark = settings.usage_low if was_full else settings.usage_max
    full = [one > mark for one in usages]
    return any(full) if settings.any_full_is_read_only else all(full)


class DiskMonitor:
    """Calls `on_change(full)` from its thread whenever the verdict changes.

    `met_full_disk` says that a write was refused for lack of space, whatever the usage: a quota, or a very large write.
    """

    def __init__(
        self,
        directories: Sequence[Path],
        settings: DiskSettings,
        on_change: Callable[[bool], None],
        measure: Callable[[Path], float] = usage,
        met_full_disk: Callable[[], bool] = lambda: False,
    ) -> None:
        self._directories = tuple(directories)
        self._settings = settings
        self._on_change = on_change
        self._measure = measure
        self._met_full_disk = met_full_disk
        self._full = False
        self._warned: set[Path] = set()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Check once in the caller's thread, then at each interval in an own one."""
        self.check()
        self._thread = threading.Thread(target=self._run, name="disks", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread; idempotent."""
        self._stopping.set()
        if self._thread:
            self._thread.join()

    def check(self) -> None:
        """Measure once and tell of a change."""
        usages = {directory: self._measure(directory) for directory in self._directories}
        self._warn(usages)
        full = is_full(list(usages.values()), self._settings, was_full=self._full) or self._met_full_disk()
        if full == self._full:
            return
        self._full = full
        self._on_change(full)

    def _warn(self, usages: dict[Path, float]) -> None:
        """One warning when a directory passes the mark, not one each interval."""
        high = {directory for directory, one in usages.items() if one > self._settings.usage_warn}
        for directory in high - self._warned:
            log.warning("disk fills up", extra={"directory": directory, "usage": f"{usages[directory]:.3f}"})
        self._warned = high

    def _run(self) -> None:
        while not self._stopping.wait(self._settings.check_interval_ms / 1000):
            self.check()
