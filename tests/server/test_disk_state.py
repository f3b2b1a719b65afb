"""Consequences of the space in directories: levels, read-only mode, room for recoveries (B15). Pure functions."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookie.server.configuration.settings import DiskSettings
from bookie.server.disks.state import (
    INDEX,
    JOURNAL,
    LEDGER,
    Directory,
    DiskState,
    Usage,
    judge,
    measure,
    total_usage,
)
from bookie.storage.disk_level import DiskLevel

GIB = 1 << 30
A, B = (Directory(LEDGER, Path(name)) for name in ("/a", "/b"))
JOURNALS = Directory(JOURNAL, Path("/j"))
INDEXES = Directory(INDEX, Path("/i"))


def settings(**other: object) -> DiskSettings:
    return DiskSettings(usage_max=0.9, usage_low=0.8, usage_warn=0.7, **other)  # type: ignore[arg-type]


def used(fraction: float, device: int = 1, total: int = 100 * GIB) -> Usage:
    return Usage(device=device, total=total, usable=round(total * (1 - fraction)))


@pytest.mark.parametrize(
    ("usages", "any_full", "were_full", "expected"),
    [
        ((0.5, 0.5), True, "", "ok ok"),
        ((0.5, 0.75), True, "", "ok warn"),
        ((0.5, 0.95), True, "", "ok full read-only"),
        ((0.5, 0.95), False, "", "ok full"),
        ((0.95, 0.95), False, "", "full full read-only"),
        ((0.5, 0.9), True, "", "ok warn"),
        ((0.5, 0.85), True, "b", "ok warn"),
        ((0.85, 0.85), True, "ab", "full full read-only"),
        ((0.75, 0.85), True, "ab", "full full read-only"),
        ((0.5, 0.85), True, "ab", "ok warn"),
        ((0.3, 0.95), True, "ab", "ok full read-only"),
    ],
)
def test_levels(usages: tuple[float, float], any_full: bool, were_full: str, expected: str) -> None:
    """B15, ST8: a directory is full above the mark; if all were full, they must fall below the low mark together."""
    found = {one: used(usage, device) for device, (one, usage) in enumerate(zip((A, B), usages, strict=True))}
    state = judge(found, settings(any_full_is_read_only=any_full), were_full={Path(f"/{name}") for name in were_full})
    reported = [one.level.name.lower() for one in state.directories] + ["read-only"] * state.read_only
    assert " ".join(reported) == expected


def test_a_file_system_counts_once() -> None:
    """Two directories on one full disk and an empty disk: the sum counts two disks, not three."""
    assert total_usage([used(0.9, 1), used(0.9, 1), used(0.1, 2)]) == pytest.approx(0.5)
    assert total_usage([]) == 0.0


def test_a_journal_is_full_when_a_write_says_so() -> None:
    """A journal's files are preallocated, so it is full only when a write finds no space."""
    found = {A: used(0.1), JOURNALS: used(0.99, 2)}
    state = judge(found, settings())
    assert (state.of(JOURNALS.path).level, state.read_only, state.level) == (DiskLevel.WARN, False, DiskLevel.OK)
    state = judge(found, settings(), refused={JOURNALS.path})
    assert (state.of(JOURNALS.path).level, state.read_only, state.high_priority) == (DiskLevel.FULL, True, False)
    with pytest.raises(KeyError):
        state.of(B.path)


def test_a_refused_write_counts_whatever_the_usage() -> None:
    """B15: a refused write counts whatever the usage, as with a quota or without inodes."""
    state = judge({A: used(0.1), B: used(0.1, 2)}, settings(any_full_is_read_only=False), refused={A.path})
    assert [one.level for one in state.directories] == [DiskLevel.FULL, DiskLevel.OK]
    assert not state.read_only
    assert not state.high_priority


@pytest.mark.parametrize("any_full", [True, False])
def test_a_directory_that_cannot_be_asked(any_full: bool) -> None:
    """With a directory that is unmounted, or was made read-only by the system, the bookie accepts no writes at all."""
    for wrong in ("gone", Usage(device=1, total=GIB, usable=GIB, read_only=True)):
        state = judge({A: used(0.1), B: wrong}, settings(any_full_is_read_only=any_full))
        assert state.of(B.path).level == state.level == DiskLevel.BAD
        assert state.of(B.path).problem
        assert not state.of(B.path).room_for(0)
        assert state.read_only
        assert not state.high_priority


def test_room_for_recoveries() -> None:
    """Every ledger directory needs room for recoveries, and an index directory its own."""
    limits = settings(recovery_room_bytes=2 * GIB, index_room_bytes=GIB)
    for ledgers, indexes, expected in ((3, 3, True), (2, 1, True), (1, 3, False), (3, 0, False)):
        found = {A: Usage(1, 100 * GIB, 3 * GIB), B: Usage(2, 100 * GIB, ledgers * GIB)}
        found[INDEXES] = Usage(3, 100 * GIB, indexes * GIB)
        assert judge(found, limits).high_priority is expected
    state = judge({A: Usage(1, 100 * GIB, 3 * GIB)}, limits)
    assert state.read_only
    assert state.of(A.path).room_for(3 * GIB)
    assert not state.of(A.path).room_for(3 * GIB + 1)


directories = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 2), st.booleans()), min_size=1, max_size=4)


@given(directories, st.booleans())
def test_verdicts_hold_together(drawn: list[tuple[float, int, bool]], any_full: bool) -> None:
    """A fuller disk is never better, one full disk never worse than all, and each directory is judged by itself."""
    found = {Directory(LEDGER, Path(f"/{n}")): used(use, device) for n, (use, device, _) in enumerate(drawn)}
    before = {Path(f"/{n}") for n, (_, _, was) in enumerate(drawn) if was}
    state = judge(found, settings(any_full_is_read_only=any_full), were_full=before)
    fuller = judge(
        {one: Usage(usage.device, usage.total, usage.usable // 2) for one, usage in found.items()},
        settings(any_full_is_read_only=any_full),
        were_full=before,
    )
    assert all(now.level <= then.level for now, then in zip(state.directories, fuller.directories, strict=True))
    full = [one.level == DiskLevel.FULL for one in state.directories]
    assert state.read_only is (any(full) if any_full else all(full))
    for one in state.directories:
        assert one.usage is not None
        assert one.level == DiskLevel.FULL or one.usage.used <= 0.9
        assert one.level != DiskLevel.FULL or one.usage.used > 0.9 or len(before) == len(drawn)


def test_a_real_file_system(tmp_path: Path) -> None:
    """The figures of a real file system are plausible, and a missing directory is an error, not a full disk."""
    found = measure(tmp_path)
    assert 0 < found.used < 1
    assert found.device == tmp_path.stat().st_dev
    assert not found.read_only
    with pytest.raises(FileNotFoundError):
        measure(tmp_path / "none")


def test_nothing_is_watched() -> None:
    """The state before the first check restricts nothing."""
    assert (DiskState().level, DiskState().read_only, DiskState().high_priority) == (DiskLevel.OK, False, True)
