"""Clusters that go on for too long in simulated time are ended: nothing is claimed about them, and nothing goes on."""

import os
import subprocess
import sys

PROGRAM = """
import sys
import tests.engine.cluster.world as world
from tests.engine.runtime import Runtime

world.SIMULATED_S_MAX = float(sys.argv[1])
runtime = Runtime()
runtime.redirect()
outcome = world.play(runtime, 0)
print(outcome.unfinished, outcome.findings)
"""


def outcome(seconds: str) -> str:
    """Play a cluster for at most some simulated seconds. Return what became of it."""
    environment = {**os.environ, "PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1"}
    words = [sys.executable, "-c", PROGRAM, seconds]
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


def test_a_world_that_takes_too_long_is_left_unfinished() -> None:
    """The same world is unfinished within a hundredth of a second, and clean within its time."""
    assert outcome("0.01") == "True []"
    assert outcome("500") == "False []"
