"""Test that asking for short time slices never disturbs the thread, whether the kernel grants it or not."""

import os
import threading

from bookie._fast.base.process import wish_short_slice


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
