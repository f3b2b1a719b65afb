"""Work in all directories at the same time: that it is, what comes back, and what happens without threads."""

import subprocess
import sys
import threading

import pytest

from bookie.storage.garbage.everywhere import everywhere

END_S = 60.0


@pytest.mark.parametrize("count", [0, 1, 2, 12])
def test_all_calls_run_at_the_same_time(count: int) -> None:
    """Each call ends only when all have begun; the results are in the order of the directories."""
    all_there = threading.Barrier(max(count, 1))

    def work(number: int) -> int:
        all_there.wait(END_S)
        return number * number

    assert everywhere(count, work) == [number * number for number in range(count)]


def test_errors_wait_for_the_other_calls() -> None:
    """The first directory's error is raised when all calls have ended."""
    ended: list[int] = []

    def work(number: int) -> None:
        if number % 2:
            raise OSError(number, "broken")
        ended.append(number)

    with pytest.raises(OSError, match="broken") as raised:
        everywhere(5, work)
    assert raised.value.errno == 1
    assert sorted(ended) == [0, 2, 4]


@pytest.mark.parametrize("threads", [0, 2])
def test_without_more_threads(monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    """The threads that there are do the work of all directories."""
    start = threading.Thread.start
    started: list[threading.Thread] = []

    def refuse(thread: threading.Thread) -> None:
        if len(started) == threads:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert everywhere(7, str) == list("0123456")
    assert len(started) == threads


def test_a_process_that_ends_waits_for_no_disk() -> None:
    """A directory whose disk does not answer keeps no process alive whose main thread has ended."""
    program = """
import threading
from bookie.storage.garbage.everywhere import everywhere
begun = threading.Barrier(3)
def work(number):
    begun.wait()
    threading.Event().wait()
threading.Thread(target=everywhere, args=(2, work), daemon=True).start()
begun.wait()
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=END_S)
