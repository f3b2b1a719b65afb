"""What directories of a bookie can take: measured, judged, and told as plain values. Pure functions but for `measure`.

The rules are Apache BookKeeper's: a directory is full above one mark, and comes back below it while another of its kind
has room; when none has, the use of all of them, each file system counted once, must fall below the low mark first.
Beyond them, a directory that cannot be asked, or that the system has made read-only, is `BAD` until it can be again.
"""

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bookie.server.configuration.settings import DiskSettings
from bookie.storage.disk_level import DiskLevel

__all__ = [
    "Directory",
    "DiskState",
    "INDEX",
    "JOURNAL",
    "judge",
    "LEDGER",
    "measure",
    "State",
    "total_usage",
    "Usage",
]

LEDGER, INDEX, JOURNAL = "ledger", "index", "journal"
"""Kinds of directories. A journal is full when a write says so, whatever its usage: its files lie there already."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What the system tells of the file system below a directory. Sizes in bytes."""

    device: int
    total: int
    usable: int
    """What an ordinary user may still write."""
    read_only: bool = False

    @property
    def used(self) -> float:
        """The fraction that an ordinary user cannot write any more, 0 to 1."""
        return 1 - self.usable / self.total if self.total else 0.0


@dataclass(frozen=True, slots=True)
class Directory:
    """A directory to be watched."""

    kind: str
    path: Path


@dataclass(frozen=True, slots=True)
class State:
    """One directory. `usage` is None where it cannot be told, and `problem` says why."""

    kind: str
    path: Path
    level: DiskLevel
    usage: Usage | None
    problem: str = ""

    def room_for(self, size: int) -> bool:
        """Whether that many bytes may still be written, full or not."""
        return self.level != DiskLevel.BAD and self.usage is not None and self.usage.usable >= size


@dataclass(frozen=True, slots=True)
class DiskState:
    """All directories at one time, and what follows from it."""

    directories: tuple[State, ...] = ()
    read_only: bool = False
    high_priority: bool = True
    """A read-only bookie has room for adds of a recovery."""

    @property
    def level(self) -> DiskLevel:
        """The worst of ledger and index directories."""
        return max((one.level for one in self.directories if one.kind != JOURNAL), default=DiskLevel.OK)

    def of(self, path: Path) -> State:
        """The state of one directory; KeyError when it is not watched."""
        for one in self.directories:
            if one.path == path:
                return one
        raise KeyError(path)

    def verdict(self) -> tuple[object, ...]:
        """What followers are told of: everything but the figures."""
        return self.read_only, self.high_priority, *((one.path, one.level) for one in self.directories)


def measure(path: Path) -> Usage:
    """Ask the system. OSError when the directory is not there, or its disk does not answer."""
    status = os.statvfs(path)
    return Usage(
        device=path.stat().st_dev,
        total=status.f_blocks * status.f_frsize,
        usable=status.f_bavail * status.f_frsize,
        read_only=bool(status.f_flag & os.ST_RDONLY),
    )


def total_usage(usages: Iterable[Usage]) -> float:
    """The used fraction of all file systems together, each counted once."""
    systems = {one.device: one for one in usages}.values()
    total = sum(one.total for one in systems)
    return 1 - sum(one.usable for one in systems) / total if total else 0.0


def judge(
    found: Mapping[Directory, Usage | str],
    settings: DiskSettings,
    *,
    were_full: Collection[Path] = (),
    refused: Collection[Path] = (),
) -> DiskState:
    """The state that follows from what was found: a usage, or what is wrong with the directory.

    `were_full`: by the last judgement. `refused`: where a write found no space, whatever the usage (a quota, inodes).
    """
    states: list[State] = []
    for kind in (LEDGER, INDEX, JOURNAL):
        of_kind = {one: usage for one, usage in found.items() if one.kind == kind}
        states += _states(of_kind, settings, were_full, refused)
    enough = any if settings.any_full_is_read_only else all
    full = [
        enough(one.level >= DiskLevel.FULL for one in states if one.kind == kind)
        for kind in (LEDGER, INDEX, JOURNAL)
        if any(one.kind == kind for one in states)
    ]
    return DiskState(tuple(states), any(full) or _any_bad(states), _recovery_fits(states, settings, refused))


def _any_bad(states: Iterable[State]) -> bool:
    return any(one.level == DiskLevel.BAD for one in states)


def _recovery_fits(states: Sequence[State], settings: DiskSettings, refused: Collection[Path]) -> bool:
    """Each ledger is bound to a directory, so all of them must have the room."""
    least = {LEDGER: settings.recovery_room_bytes, INDEX: settings.index_room_bytes, JOURNAL: 0}
    return not refused and all(one.room_for(least[one.kind]) for one in states)


def _states(
    found: Mapping[Directory, Usage | str],
    settings: DiskSettings,
    were_full: Collection[Path],
    refused: Collection[Path],
) -> list[State]:
    """Those of one kind."""
    usages = [usage for usage in found.values() if isinstance(usage, Usage)]
    none_left = all(one.path in were_full for one in found)
    held = none_left and bool(usages) and total_usage(usages) >= settings.usage_low
    return [_state(one, usage, settings, held=held, refused=one.path in refused) for one, usage in found.items()]


def _state(one: Directory, usage: Usage | str, settings: DiskSettings, *, held: bool, refused: bool) -> State:
    if isinstance(usage, str):
        return State(one.kind, one.path, DiskLevel.BAD, None, usage)
    if usage.read_only:
        return State(one.kind, one.path, DiskLevel.BAD, usage, "its file system is read-only now")
    if refused:
        return State(one.kind, one.path, DiskLevel.FULL, usage, "a write found no space")
    level = DiskLevel.WARN if usage.used > settings.usage_warn else DiskLevel.OK
    if one.kind != JOURNAL and (held or usage.used > settings.usage_max):
        level = DiskLevel.FULL
    return State(one.kind, one.path, level, usage)
