"""Full disks: the verdict by marks and mode, and the monitor that tells of changes only (B15)."""

import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookie.server.disks import DiskMonitor, is_full, usage
from bookie.server.mode import Mode
from bookie.server.settings import DiskSettings

SETTINGS = DiskSettings(usage_max=0.9, usage_low=0.8, usage_warn=0.7, check_interval_ms=10)
ONE_OF = [Path("/a"), Path("/b")]


@pytest.mark.parametrize(
    ("usages", "any_full", "was_full", "expected"),
    [
        ([0.5, 0.5], True, False, False),
        ([0.5, 0.95], True, False, True),
        ([0.5, 0.95], False, False, False),
        ([0.95, 0.95], False, False, True),
        ([0.5, 0.85], True, False, False),
        ([0.5, 0.85], True, True, True),
        ([0.5, 0.75], True, True, False),
        ([0.9], True, False, False),
    ],
)
def test_verdict(usages: list[float], any_full: bool, was_full: bool, expected: object) -> None:
    """B15: full above the mark, writable again only below the low mark; one or all directories by setting."""
    settings = DiskSettings(usage_max=0.9, usage_low=0.8, usage_warn=0.7, any_full_is_read_only=any_full)
    assert is_full(usages, settings, was_full=was_full) is expected


@given(st.lists(st.floats(0, 1), max_size=30))
def test_changes_alternate(usages: list[float]) -> None:
    """B15: whatever the disk does, the monitor says full and not full in turn, and agrees with the last check."""
    told: list[bool] = []
    now = 0.0
    monitor = DiskMonitor([Path("/a")], SETTINGS, told.append, lambda _: now)
    full = False
    for now in usages:
        monitor.check()
        full = is_full([now], SETTINGS, was_full=full)
        assert (told[-1] if told else False) is full
    assert told == [number % 2 == 0 for number in range(len(told))]


def test_a_refused_write_counts_whatever_the_usage() -> None:
    """B15: a write that found no space makes the bookie read-only until one succeeds again."""
    told: list[bool] = []
    writes = iter([False, True, True, False])
    monitor = DiskMonitor(ONE_OF, SETTINGS, told.append, lambda _: 0.1, lambda: next(writes))
    for _ in range(4):
        monitor.check()
    assert told == [True, False]


def test_the_thread_checks_by_itself() -> None:
    """B15: within an interval after the disk fills the change is told, and again when space returns."""
    level, seen = [0.1], threading.Semaphore(0)
    told: list[bool] = []

    def on_change(full: bool) -> None:
        told.append(full)
        seen.release()

    monitor = DiskMonitor(ONE_OF, SETTINGS, on_change, lambda _: level[0])
    monitor.start()
    try:
        for level[0] in (0.99, 0.1):
            assert seen.acquire(timeout=10)
    finally:
        monitor.stop()
        monitor.stop()
    assert told == [True, False]


def test_usage_counts_what_a_user_may_not_write(tmp_path: Path) -> None:
    """A real file system's usage is a fraction."""
    assert 0 < usage(tmp_path) < 1


def test_reasons_add_up() -> None:
    """Space that returns does not undo the operator's wish."""
    told: list[bool] = []
    mode = Mode()
    mode.follow(told.append)
    mode.set("disk", read_only=True)
    mode.set("operator", read_only=True)
    mode.set("disk", read_only=False)
    assert mode.read_only
    mode.set("operator", read_only=False)
    mode.set("operator", read_only=False)
    assert told == [False, True, False]


def test_a_late_follower_learns_the_mode() -> None:
    """Who follows later is told at once where things stand."""
    mode = Mode()
    told: list[bool] = []
    mode.set("config", read_only=True)
    mode.follow(told.append)
    assert told == [True]
