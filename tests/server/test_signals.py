"""Signals as steps, in a separate process: stop, hurry, exit at once; and the first reason decides the exit code."""

import signal
import subprocess
import sys

import pytest

from bookie.server.process.signals import Stop, StopRequested

SCRIPT = """
import sys, time
from bookie._fast.base import fatal
from bookie.server.process import signals
stop = signals.Stop(lambda: print("stop", flush=True))
signals.install(stop, lambda: print("hurry", flush=True))
print("installed", flush=True)
if sys.argv[1] == "compiled":
    fatal.wait(60)  # the main thread is in compiled code and runs no Python
stop.wait()
print("woken", flush=True)
while True:
    fatal.wait(60)
"""


@pytest.mark.parametrize("where", ["python", "compiled"])
def test_three_steps(where: str) -> None:
    """Each signal is one step, whatever the main thread does; the third ends the process with 2."""
    process = subprocess.Popen([sys.executable, "-c", SCRIPT, where], stdout=subprocess.PIPE, text=True)
    with process:
        assert process.stdout
        assert process.stdout.readline() == "installed\n"
        process.send_signal(signal.SIGTERM)
        assert process.stdout.readline() == "stop\n"
        if where == "python":
            assert process.stdout.readline() == "woken\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "hurry\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 2


def test_the_first_wish_counts() -> None:
    """A later reason neither changes the code nor runs the reaction again."""
    reported: list[str] = []
    stop = Stop(lambda: reported.append("asked"))
    stop.check()
    stop.request(3)
    stop.request(0)
    assert stop.wait() == 3
    assert reported == ["asked"]
    with pytest.raises(StopRequested):
        stop.check()
