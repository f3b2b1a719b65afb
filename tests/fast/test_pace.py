"""Test the limit of background work: work waits for the time that it costs, and waiting work notices changes."""

import threading
from collections.abc import Callable

import pytest

from bookie._fast.base.pace import Pacer

AGES = 10**9
"""A number of bytes that takes longer than any test at one byte per second."""


def test_without_a_limit_nothing_waits() -> None:
    """With rate 0, any amount is granted at once."""
    pace = Pacer()
    assert all(pace.take(AGES) for _ in range(100))


@pytest.mark.parametrize(
    ("change", "goes"),
    [
        (lambda pace: pace.set_rate(0), True),
        (lambda pace: pace.set_rate(10**15), True),
        (lambda pace: pace.stop(), False),
    ],
    ids=["unlimited", "faster", "stopped"],
)
def test_a_change_wakes_who_waits(change: Callable[[Pacer], None], goes: bool) -> None:
    """Work that waits for years at the old rate continues at a new one, and ends when the pace is stopped."""
    pace = Pacer(1)
    assert pace.take(AGES), "the first one goes on credit"
    answers: list[bool] = []
    waiting = threading.Thread(target=lambda: answers.append(pace.take(1)))
    waiting.start()
    change(pace)
    waiting.join()
    assert answers == [goes]
    assert pace.take(1) == goes


def test_a_pause_ends_with_resume() -> None:
    """Paused work waits whatever the rate is, and continues after the pause."""
    pace = Pacer()
    pace.pause(True)
    answers: list[bool] = []
    waiting = threading.Thread(target=lambda: answers.append(pace.take(1)))
    waiting.start()
    assert not answers
    pace.pause(False)
    waiting.join()
    assert answers == [True]
    pace.pause(True)
    waiting = threading.Thread(target=lambda: answers.append(pace.take(1)))
    waiting.start()
    pace.stop()
    waiting.join()
    assert answers == [True, False]
