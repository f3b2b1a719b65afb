"""`bookie.server.process.repeating`: a thread that survives exceptions of its calls, and ends when told."""

import logging
import threading

import pytest

from bookie.server.process.repeating import Repeating

SEEN_S = 20.0


def test_a_call_that_raises_is_not_the_last(caplog: pytest.LogCaptureFixture) -> None:
    """It is logged with its traceback, the next call follows, and after `stop` there is none."""
    turns: list[int] = []
    seen = threading.Event()

    def call() -> None:
        turns.append(len(turns))
        if len(turns) == 1:
            raise ValueError("odd")
        seen.set()

    one = Repeating("often", 0.001, call)
    with caplog.at_level(logging.ERROR):
        one.start()
        assert seen.wait(SEEN_S)
        one.stop()
    (said,) = caplog.records
    assert said.exc_info is not None
    assert vars(said)["task"] == "often"
    assert not [thread for thread in threading.enumerate() if thread.name == "often"]
    one.stop()


def test_stop_without_a_start() -> None:
    """`stop` works where a start failed before this thread was started."""
    Repeating("never", 1, lambda: None).stop()
