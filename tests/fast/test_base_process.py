"""Test how threads ask the kernel for short time slices, and for a name."""

import os
import threading
from pathlib import Path

from bookie._fast.base.process import show_name, wish_short_slice


def test_the_wish_keeps_policy_and_niceness() -> None:
    """The thread keeps its scheduling policy and niceness."""
    seen: list[tuple[int, int]] = []

    def wish() -> None:
        wish_short_slice()
        seen.append((os.sched_getscheduler(0), os.getpriority(os.PRIO_PROCESS, 0)))

    thread = threading.Thread(target=wish)
    thread.start()
    thread.join()
    assert seen == [(os.SCHED_OTHER, os.getpriority(os.PRIO_PROCESS, 0))]


def test_a_thread_is_shown_by_its_name() -> None:
    """The system keeps the first 15 bytes, for this thread only."""
    seen: list[str] = []

    def show() -> None:
        show_name("journal-prepare-12")
        seen.append(Path(f"/proc/self/task/{threading.get_native_id()}/comm").read_text())

    before = Path("/proc/self/comm").read_text()
    thread = threading.Thread(target=show)
    thread.start()
    thread.join()
    assert seen == ["journal-prepare\n"]
    assert Path("/proc/self/comm").read_text() == before
