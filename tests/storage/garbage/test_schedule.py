"""When collections are due (schedule): a restart postpones nothing, and an unusable file costs one interval."""

import time
from pathlib import Path

import pytest

from bookie.storage.garbage.schedule import NAME, Schedule, Work

HOUR_S = 3600.0
INTERVALS = {Work.CYCLE: HOUR_S, Work.MINOR: 2 * HOUR_S, Work.MAJOR: 24 * HOUR_S, Work.OVER_REPLICATED: 24 * HOUR_S}


def hours_ago(directory: Path, *hours: float) -> None:
    """Write a file of an earlier process."""
    now = time.time()
    times = ",".join(str(int(1000 * (now - HOUR_S * at))) for at in hours)
    (directory / NAME).write_text(f"1,{times}\n")


def due(schedule: Schedule) -> set[Work]:
    """Return the tasks that would run now."""
    return {work for work in Work if schedule.due(work)}


def test_what_was_missed_is_due_after_a_start(tmp_path: Path) -> None:
    """Each kind has its own time; the first cycle waits for a tenth of its pause after the start."""
    hours_ago(tmp_path, 5, 1, 30, 23)
    schedule = Schedule(tmp_path, INTERVALS)
    assert due(schedule) == {Work.MAJOR}
    assert HOUR_S / 10 - 60 < schedule.pause_s() <= HOUR_S / 10
    assert schedule.last_ms(Work.MAJOR) == 0, "not since the start"
    schedule.done(Work.MAJOR, Work.MINOR)
    assert due(schedule) == set()
    assert schedule.last_ms(Work.MAJOR) > 0
    assert due(Schedule(tmp_path, INTERVALS)) == set(), "it was written down"


def test_restarts_do_not_postpone_the_first_time(tmp_path: Path) -> None:
    """A new bookie counts from its first start, not from its last."""
    first = Schedule(tmp_path, INTERVALS)
    assert due(first) == set()
    line = (tmp_path / NAME).read_text()
    Schedule(tmp_path, INTERVALS)
    assert (tmp_path / NAME).read_text() == line


def test_a_pause_goes_on_where_it_was(tmp_path: Path) -> None:
    """Half of the pause is over."""
    hours_ago(tmp_path, 0.5, 0, 0, 0)
    assert HOUR_S / 2 - 60 < Schedule(tmp_path, INTERVALS).pause_s() <= HOUR_S / 2


@pytest.mark.parametrize("content", ["", "2,1,1,1,1", "1,1,1", "1,a,b,c,d", "1,-1,-1,-1,-1", "\x00" * 20])
def test_a_file_that_says_nothing(tmp_path: Path, content: str) -> None:
    """Everything counts from now on, and the file is written again."""
    (tmp_path / NAME).write_text(content)
    assert due(Schedule(tmp_path, INTERVALS)) == set()
    assert due(Schedule(tmp_path, dict.fromkeys(Work, HOUR_S))) == set()
    assert (tmp_path / NAME).read_text().startswith("1,")


def test_a_clock_that_was_set_back(tmp_path: Path) -> None:
    """A time in the future counts as now, so at most one interval passes."""
    hours_ago(tmp_path, -1000, -1000, -1000, -1000)
    schedule = Schedule(tmp_path, INTERVALS)
    assert due(schedule) == set()
    assert schedule.pause_s() <= HOUR_S


def test_a_directory_that_cannot_be_written(tmp_path: Path) -> None:
    """The schedule works in memory for this process."""
    schedule = Schedule(tmp_path / "gone", dict.fromkeys(Work, 0.0))
    assert due(schedule) == set(Work)
    schedule.done(*Work)
    assert not (tmp_path / "gone").exists()
