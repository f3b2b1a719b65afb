"""What the directories of a bookie can take: measured, assessed, and returned as plain values. Pure functions except
`measure`.

The rules are Apache BookKeeper's: a directory is full above one mark, and usable again below it while another of its
kind has space; if none has, the usage of all of them, with each file system counted once, must first fall below the
low mark. In addition, a directory that cannot be queried, or that the system has made read-only, is `BAD` until that
changes.
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
"""The kinds of directories. A journal is full when a write fails, because its files are preallocated."""


@dataclass(frozen=True, slots=True)
class Usage:
    """The system's data about the file system of a directory. Sizes in bytes."""

    device: int
    total: int
    usable: int
    """The bytes that an ordinary user may still write."""
    read_only: bool = False

    @property
    def used(self) -> float:
        """The fraction that an ordinary user can no longer write, 0 to 1."""
        return 1 - self.usable / self.total if self.total else 0.0


@dataclass(frozen=True, slots=True)
class Directory:
    """A directory to be monitored."""

    kind: str
    path: Path


@dataclass(frozen=True, slots=True)
class State:
    """The state of one directory. `usage` is None if it cannot be queried; `problem` then says why."""

    kind: str
    path: Path
    level: DiskLevel
    usage: Usage | None
    problem: str = ""

    def room_for(self, size: int) -> bool:
        """Return whether `size` bytes may still be written, even if the directory counts as full."""
        return self.level != DiskLevel.BAD and self.usage is not None and self.usage.usable >= size


@dataclass(frozen=True, slots=True)
class DiskState:
    """The state of all directories at one time, and the consequences."""

    directories: tuple[State, ...] = ()
    read_only: bool = False
    high_priority: bool = True
    """Whether a read-only bookie has room for recovery adds."""

    @property
    def level(self) -> DiskLevel:
        """The worst level of ledger and index directories."""
        return max((one.level for one in self.directories if one.kind != JOURNAL), default=DiskLevel.OK)

    def of(self, path: Path) -> State:
        """Return the state of one directory. Raises KeyError if it is not monitored."""
        for one in self.directories:
            if one.path == path:
                return one
        raise KeyError(path)

    def verdict(self) -> tuple[object, ...]:
        """Return what followers are notified of: everything but the figures."""
        return self.read_only, self.high_priority, *((one.path, one.level) for one in self.directories)


def measure(path: Path) -> Usage:
    """Query the system. Raises OSError if the directory is missing, or its disk does not respond."""
    status = os.statvfs(path)
    return Usage(
        device=path.stat().st_dev,
        total=status.f_blocks * status.f_frsize,
        usable=status.f_bavail * status.f_frsize,
        read_only=bool(status.f_flag & os.ST_RDONLY),
    )


def total_usage(usages: Iterable[Usage]) -> float:
    """Return the used fraction of all file systems together, each counted once."""
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
    """Return the state that follows from `found`: for each directory its usage, or what is wrong with it.

    `were_full` has the directories that were full in the last state; `refused` those where a write found no space,
    whatever the usage (for example because of a quota or inodes).
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
    """Return whether all directories have room for recovery adds, because each ledger is in a fixed directory."""
    least = {LEDGER: settings.recovery_room_bytes, INDEX: settings.index_room_bytes, JOURNAL: 0}
    return not refused and all(one.room_for(least[one.kind]) for one in states)


def _states(
    found: Mapping[Directory, Usage | str],
    settings: DiskSettings,
    were_full: Collection[Path],
    refused: Collection[Path],
) -> list[State]:
    """Return the states of the directories of one kind."""
    usages = [usage for usage in found.values() if isinstance(usage, Usage)]
    none_left = all(one.path in were_full for one in found)
    held = none_left and bool(usages) and total_usage(usages) >= settings.usage_low
    return [_state(one, usage, settings, held=held, refused=one.path in refused) for one, usage in found.items()]


def _state(one: Directory, usage: Usage | str, settings: DiskSettings, *, held: bool, refused: bool) -> State:
    if isinstance(usage, str):
        return State(one.kind, one.path, DiskLevel.BAD, None, usage)
    if usage.read_only:
        return State(one.kind, one.path, DiskLevel.BAD, usage, "its file system has become read-only")
    if refused:
        return State(one.kind, one.path, DiskLevel.FULL, usage, "a write found no space")
    level = DiskLevel.WARN if usage.used > settings.usage_warn else DiskLevel.OK
    if one.kind != JOURNAL and (held or usage.used > settings.usage_max):
        level = DiskLevel.FULL
    return State(one.kind, one.path, level, usage)
