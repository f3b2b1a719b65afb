"""Monitors the bookie's directories, and notifies followers when what they can take has changed.

It has one thread, `disks`; `check` also runs in the caller's thread, one at a time. Errors of the system are data
here: a directory that cannot be queried is a state, and never ends the thread.
"""

import logging
import threading
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from bookie.server.configuration.settings import DiskSettings
from bookie.server.disks.state import Directory, DiskState, State, Usage, judge, measure
from bookie.server.process.repeating import Repeating
from bookie.storage.disk_level import DiskLevel

__all__ = ["DiskMonitor"]

log = logging.getLogger(__name__)

WORDS = {
    DiskLevel.OK: (logging.INFO, "a directory has free space again"),
    DiskLevel.WARN: (logging.WARNING, "a disk is nearly full"),
    DiskLevel.FULL: (logging.ERROR, "a disk is full"),
    DiskLevel.BAD: (logging.ERROR, "a directory is unusable"),
}


class DiskMonitor:
    """`state` is the latest assessment. `refused` returns directories whose last write found no space."""

    def __init__(
        self,
        directories: Sequence[Directory],
        settings: DiskSettings,
        *,
        measure: Callable[[Path], Usage] = measure,
        refused: Callable[[], Collection[Path]] = tuple,
    ) -> None:
        self._directories = tuple(directories)
        self._settings = settings
        self._measure = measure
        self._refused = refused
        self._devices: dict[Path, int] = {}
        self._were_full: set[Path] = set()
        self._levels: dict[Path, DiskLevel] = {}
        self._followers: list[Callable[[DiskState], None]] = []
        self._afterwards: list[Callable[[], None]] = []
        self._lock = threading.Lock()  # guards all of this, and orders the calls of followers
        self._checks = Repeating("disks", settings.check_interval_ms / 1000, self.check)
        self.state = DiskState()

    def follow(self, tell: Callable[[DiskState], None]) -> None:
        """Call `tell` with the present state, and after every change of a level or verdict. It may not call back."""
        with self._lock:
            self._followers.append(tell)
            tell(self.state)

    def after_each_check(self, call: Callable[[], None]) -> None:
        """Call `call` at the end of every check. Use this before `start`; `call` may not call back."""
        self._afterwards.append(call)

    def start_full(self) -> None:
        """Let the first check assume that all directories were full before. Call it before `start`."""
        self._were_full = {one.path for one in self._directories}

    def start(self) -> None:
        """Check once in the caller's thread, then at each interval in the monitor's own thread."""
        self.check()
        self._checks.start()

    def stop(self) -> None:
        """Stop the thread. Idempotent."""
        self._checks.stop()

    def check(self) -> DiskState:
        """Measure and assess once, and notify followers of a change."""
        with self._lock:
            found = {one: self._find(one.path) for one in self._directories}
            state = judge(found, self._settings, were_full=self._were_full, refused=self._refused())
            self._were_full = {one.path for one in state.directories if one.level >= DiskLevel.FULL}
            changed = state.verdict() != self.state.verdict()
            for one in state.directories:
                self._say(one)
            if changed:
                for tell in self._followers:
                    tell(state)
            self.state = state  # only now, so that the next check notifies followers again if one raised
            for call in self._afterwards:
                call()
            return state

    def stats(self) -> dict[str, float]:
        """Return for each directory its usage in percent, free bytes, and level (0 ok, 1 warn, 2 full, 3 bad)."""
        found: dict[str, float] = {}
        for one in self.state.directories:
            name = f"{one.kind}_dir_{str(one.path).replace('/', '_')}"
            found[f"{name}_level"] = int(one.level)
            if one.usage is not None:
                found[f"{name}_usage"] = 100 * one.usage.used
                found[f"{name}_usable_bytes"] = one.usage.usable
        return found

    def _find(self, path: Path) -> Usage | str:
        try:
            usage = self._measure(path)
        except OSError as error:
            return f"its free space cannot be queried ({error.strerror})"
        if self._devices.setdefault(path, usage.device) != usage.device:
            return "another file system is mounted there than at the start: it was unmounted, or mounted over"
        return usage

    def _say(self, one: State) -> None:
        """Log one line when the level changes."""
        if self._levels.get(one.path, DiskLevel.OK) == one.level:
            return
        self._levels[one.path] = one.level
        level, words = WORDS[one.level]
        facts: dict[str, object] = {"kind": one.kind, "directory": one.path}
        if one.usage is not None:
            facts |= {"usage": f"{one.usage.used:.3f}", "usable_mib": one.usage.usable >> 20}
        if one.problem:
            facts["problem"] = one.problem
        if one.level == DiskLevel.BAD:
            facts["remedy"] = "check the disk and its mount; the bookie is read-only until then"
        log.log(level, words, extra=facts)
