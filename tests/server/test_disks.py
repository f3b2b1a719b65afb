"""The monitor of directories reports changes only, and continues whatever the system returns (B15)."""

import logging
import os
import threading
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookie.server.configuration.settings import DiskSettings
from bookie.server.disks.monitor import DiskMonitor
from bookie.server.disks.state import LEDGER, Directory, DiskState, Usage
from bookie.server.disks.status_file import NAME, Status, StatusFiles, read
from bookie.server.mode import Mode
from bookie.storage.disk_level import DiskLevel

SETTINGS = DiskSettings(usage_max=0.9, usage_low=0.8, usage_warn=0.7, check_interval_ms=10)
A, B, C = (Directory(LEDGER, Path(name)) for name in ("/a", "/b", "/c"))


def used(fraction: float, device: int = 1) -> Usage:
    return Usage(device=device, total=1000, usable=round(1000 * (1 - fraction)))


@given(st.lists(st.floats(0, 1), max_size=30))
def test_changes_alternate(usages: list[float]) -> None:
    """B15: whatever the disk does, read-only and writable alternate, and the last report is the last finding."""
    reported: list[DiskState] = []
    now = [0.0]
    monitor = DiskMonitor([A], SETTINGS, measure=lambda _: used(now[0]))
    monitor.follow(reported.append)
    for now[0] in usages:
        state = monitor.check()
        assert reported[-1].verdict() == state.verdict()
        assert state.read_only is (state.level == DiskLevel.FULL)
    assert all(one.verdict() != other.verdict() for one, other in pairwise(reported))


def test_a_refused_write_is_asked_for_at_each_check() -> None:
    """B15: a write that found no space makes the bookie read-only until one succeeds again."""
    reported: list[bool] = []
    writes = iter([(), (A.path,), (A.path,), ()])
    monitor = DiskMonitor([A], SETTINGS, measure=lambda _: used(0.1), refused=lambda: next(writes))
    monitor.follow(lambda state: reported.append(state.read_only))
    for _ in range(4):
        monitor.check()
    assert reported == [
        False,
        False,
        True,
        False,
    ]  # the second one is False: no recovery fitted before, and one fits now


def test_what_a_follower_could_not_take_is_told_again() -> None:
    """B15: a change that raised an exception in a follower is reported again by the next check."""
    reported: list[bool] = []
    raising = [ValueError("odd")]

    def tell(state: DiskState) -> None:
        if state.read_only and raising:
            raise raising.pop()
        reported.append(state.read_only)

    now = [0.1]
    monitor = DiskMonitor([A], SETTINGS, measure=lambda _: used(now[0]))
    monitor.follow(tell)
    monitor.check()
    now[0] = 0.95
    with pytest.raises(ValueError, match="odd"):
        monitor.check()
    monitor.check()
    monitor.check()
    assert reported == [False, False, True]


def test_the_thread_checks_by_itself_and_survives_a_dead_disk(caplog: pytest.LogCaptureFixture) -> None:
    """B15: a disk that is full, gone or back is reported within an interval each time, with one line per change."""
    levels: list[DiskLevel] = []
    seen = threading.Semaphore(0)
    now: list[float | OSError] = [0.1]

    def measured(path: Path) -> Usage:
        assert path == A.path
        if isinstance(now[0], OSError):
            raise now[0]
        return used(now[0])

    def follower(state: DiskState) -> None:
        levels.append(state.level)
        seen.release()

    caplog.set_level(logging.INFO)
    monitor = DiskMonitor([A], SETTINGS, measure=measured)
    monitor.start()
    try:
        monitor.follow(follower)
        assert seen.acquire(timeout=60)
        for now[0] in (0.99, OSError(5, os.strerror(5)), 0.1):
            assert seen.acquire(timeout=60)
    finally:
        monitor.stop()
        monitor.stop()
    assert levels == [DiskLevel.OK, DiskLevel.FULL, DiskLevel.BAD, DiskLevel.OK]
    words = [record.getMessage() for record in caplog.records if record.name == "bookie.server.disks.monitor"]
    assert words == ["a disk is full", "a directory is unusable", "a directory has free space again"]


def test_another_file_system_in_its_place() -> None:
    """An unmounted disk leaves an empty directory with free space, where nothing may be written."""
    device = 1
    monitor = DiskMonitor([A], SETTINGS, measure=lambda _: used(0.1, device))
    assert not monitor.check().read_only
    device = 2
    state = monitor.check()
    assert state.read_only
    assert "unmounted" in state.of(A.path).problem
    device = 1
    assert not monitor.check().read_only


def test_figures_by_directory() -> None:
    """PL6: each directory has its own usage, free space and level, and one that cannot be queried has none."""
    shares = {A.path: 0.75, B.path: 0.5}

    def measured(path: Path) -> Usage:
        if path not in shares:
            raise OSError(5, os.strerror(5))
        return used(shares[path])

    monitor = DiskMonitor([A, B, C], SETTINGS, measure=measured)
    monitor.check()
    assert monitor.stats() == {
        "ledger_dir__a_level": 1, "ledger_dir__a_usage": 75.0, "ledger_dir__a_usable_bytes": 250,
        "ledger_dir__b_level": 0, "ledger_dir__b_usage": 50.0, "ledger_dir__b_usable_bytes": 500,
        "ledger_dir__c_level": 3,
    }  # fmt: skip


def test_a_restart_on_disks_that_were_full() -> None:
    """ST8: after a restart, disks are judged by the low mark, as if the process had continued."""
    monitor = DiskMonitor([A], SETTINGS, measure=lambda _: used(0.85))
    assert not monitor.check().read_only
    monitor = DiskMonitor([A], SETTINGS, measure=lambda _: used(0.85))
    monitor.start_full()
    assert monitor.check().read_only
    monitor = DiskMonitor([A], SETTINGS, measure=lambda _: used(0.75))
    monitor.start_full()
    assert not monitor.check().read_only


def test_reasons_add_up() -> None:
    """Free space does not undo an operator's read-only mode."""
    reported: list[bool] = []
    reasons: list[frozenset[str]] = []
    mode = Mode()
    mode.follow(reported.append)
    mode.follow_reasons(reasons.append)
    mode.set("disk", read_only=True)
    mode.set("operator", read_only=True)
    mode.set("disk", read_only=False)
    assert mode.read_only
    mode.set("operator", read_only=False)
    mode.set("operator", read_only=False)
    assert reported == [False, True, False]
    assert reasons == [set(), {"disk"}, {"disk", "operator"}, {"operator"}, set()]


def test_a_late_follower_learns_the_mode() -> None:
    """A late follower is told the present mode at once."""
    mode = Mode()
    reported: list[bool] = []
    mode.set("config", read_only=True)
    mode.follow(reported.append)
    assert reported == [True]


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ((), None),
        (("1,READ_ONLY,1700000000000,true\n",), Status(1700000000000, True, True)),
        (("1,READ_ONLY,5,false\n", "1,READ_WRITE,6,true\n"), Status(6, False, False)),
        (("1,READ_ONLY,7\n", "1,READ_WRITE,6,false\n"), Status(7, True, True)),
        (("2,READ_ONLY,7,true\n", "", "1,NEITHER,7,true\n", "1,READ_ONLY,x,true\n", "1,READ_ONLY\n", "\0" * 30), None),
        (("\udcff", "1,READ_ONLY,9,false"), Status(9, True, False)),
    ],
)
def test_the_status_of_the_last_run(texts: tuple[str, ...], expected: Status | None, tmp_path: Path) -> None:
    """The newest line of layout 1 counts, three fields mean a mode set by hand, and unreadable lines are skipped."""
    directories = [tmp_path / str(n) for n in range(len(texts) + 1)]
    for directory, text in zip(directories, texts, strict=False):
        directory.mkdir()
        (directory / NAME).write_text(text, errors="surrogateescape")
    assert read(directories) == expected


def test_a_status_is_kept_as_well_as_it_goes(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Java can read the status; a directory that cannot be written is reported, and the others get their file."""
    good, bad = tmp_path / "good", tmp_path / "bad"
    good.mkdir()
    files = StatusFiles([bad, good])
    files.keep(frozenset({"disk"}))
    files.keep(frozenset({"disk"}))
    assert [str(bad) in str(getattr(one, "directory", "")) for one in caplog.records] == [True]
    found = read([good])
    assert found is not None
    assert (good / NAME).read_text() == f"1,READ_ONLY,{found.updated_ms},false\n"
    files.keep(frozenset({"disk", "operator"}))
    found = read([good])
    assert found is not None
    assert found.manual
    files.keep(frozenset())
    assert (good / NAME).read_text().startswith("1,READ_WRITE,")


def test_a_status_that_could_not_be_written_is_tried_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """B15: each check retries directories without the status, with the present one; the failure is logged once."""
    directory = tmp_path / "late"
    files = StatusFiles([directory])
    monitor = DiskMonitor([A], SETTINGS, measure=lambda _: used(0.1))
    monitor.after_each_check(files.again)
    monitor.check()  # no status is known yet
    mode = Mode()
    mode.follow_reasons(files.keep)
    mode.set("operator", read_only=True)
    monitor.check()
    monitor.check()
    reported = [one.getMessage() for one in caplog.records if "status file" in one.getMessage()]
    assert len(reported) == 2  # one for writable, one for read-only
    directory.mkdir()
    monitor.check()
    found = read([directory])
    assert found is not None
    assert (found.read_only, found.manual) == (True, True)
    written = (directory / NAME).stat()
    monitor.check()
    assert (directory / NAME).stat().st_ino == written.st_ino  # it is written only once
