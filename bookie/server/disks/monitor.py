"""Watches the bookie's directories, and tells whoever follows when what they can take has changed.

One thread, `disks`; `check` runs in the caller's, too, one at a time. What the system answers is data here: a directory
that cannot be asked is a state, never the end of the thread.
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
    DiskLevel.OK: (logging.INFO, "directory has room again"),
    DiskLevel.WARN: (logging.WARNING, "disk fills up"),
    DiskLevel.FULL: (logging.ERROR, "disk full"),
    DiskLevel.BAD: (logging.ERROR, "directory unusable"),
}


class DiskMonitor:
    """`state` is the last judgement. `refused` names directories where a write found no space, and none has since."""

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
        self._lock = threading.Lock()  # guards all of this, and orders what followers are told
        self._checks = Repeating("disks", settings.check_interval_ms / 1000, self.check)
        self.state = DiskState()

    def follow(self, tell: Callable[[DiskState], None]) -> None:
        """Tell the present state, and every change of a level or a verdict from now on. `tell` may not call back."""
        with self._lock:
            self._followers.append(tell)
            tell(self.state)

    def after_each_check(self, call: Callable[[], None]) -> None:
        """Call it at the end of every check, whatever that found. Call before `start`; `call` may not call back."""
        self._afterwards.append(call)

    def start_full(self) -> None:
        """Let the first check judge as if all directories had been full before. Call before `start`."""
        self._were_full = {one.path for one in self._directories}

    def start(self) -> None:
        """Check once in the caller's thread, then at each interval in an own one."""
        self.check()
        self._checks.start()

    def stop(self) -> None:
        """End the thread; idempotent."""
        self._checks.stop()

    def check(self) -> DiskState:
        """Measure and judge once, and tell of a change."""
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
            self.state = state  # only now: what raised in one of them is told again by the next check
            for call in self._afterwards:
                call()
            return state

    def stats(self) -> dict[str, float]:
        """Per directory its use in percent, bytes left, and level (0 ok, 1 warn, 2 full, 3 bad)."""
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
            return f"it cannot be asked for its space ({error.strerror})"
        if self._devices.setdefault(path, usage.device) != usage.device:
            return "another file system lies there than at the start: it was unmounted, or something mounted over it"
        return usage

    def _say(self, one: State) -> None:
        """One line when the level changes, none while it stays."""
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
            facts["remedy"] = "see to the disk and its mount; the bookie is read-only until then"
        log.log(level, words, extra=facts)
