"""The simulated world itself is tested: it is fair to a correct client, and a seed always gives the same world."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sim.runs import failures, run_seed

ROOT = Path(__file__).resolve().parents[2]
SMALL_SEEDS = range(150)
SAME = ("7", "93", "127")
PRINT = "import sys; from tests.sim.runs import run_seed; print(*run_seed(int(sys.argv[1])).lines(), sep='\\n')"


def test_a_correct_client_breaks_nothing() -> None:
    """The small client follows the rules in the plainest way, so any violation would be a false alarm."""
    assert not failures(SMALL_SEEDS, small=True)


@pytest.mark.parametrize("seed", [SAME[0], *(pytest.param(seed, marks=pytest.mark.thorough) for seed in SAME[1:])])
def test_a_seed_is_one_history(seed: str) -> None:
    """A seed gives the same history to the last event, also in another process with other hashes."""
    outputs = []
    for hashes in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": hashes}
        command = [sys.executable, "-c", PRINT, seed]
        outputs.append(subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True).stdout)
    assert outputs[0] == outputs[1]
    assert outputs[0].count(b"\n") > 5


def test_worlds_differ() -> None:
    """Seeds draw different worlds, and something happens in them."""
    runs = [run_seed(seed) for seed in range(40)]
    assert len({run.draw for run in runs}) == len(runs)
    seen = {event.what for run in runs for event in run.history}
    assert {"acked", "failed", "lac", "read", "opened", "closed", "stored", "answered", "crashed"} <= seen
