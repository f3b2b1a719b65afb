"""Each planted bug is found at the seed that a hunt once found, or soon; the same worlds are clean without it.

Any change of the engine's calls, or of how worlds are drawn, changes the worlds of seeds; so if a bug does not show at
its old seed, others are tried. `python -m tests.engine.hunt` writes the seeds of now.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from bookie._fast.base import process
from tests.engine.planted import ELSEWHERE, PLANTED, WORLDS
from tests.engine.seeds import found_seeds

pytestmark = pytest.mark.skipif(not process.faults(), reason="build with BOOKIE_FAULTS=1")

ROOT = Path(__file__).parents[2]
FINDING = re.compile(r"^seed \d+: ", re.MULTILINE)
FOUND = found_seeds()
QUICK = ("FENCE_RACE", "JOURNAL_NAMES_UNSYNCED")


def ended(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Play worlds in a process of their own."""
    words = [sys.executable, "-m", "tests.engine", *arguments]
    return subprocess.run(words, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "bug", [pytest.param(bug, marks=[] if bug in QUICK else pytest.mark.thorough) for bug in sorted(FOUND)]
)
def test_a_planted_bug_is_caught(bug: str) -> None:
    """The world of its seed has a finding, or one of the others."""
    done = ended(f"{FOUND[bug]},0:{max(300, 10 * FOUND[bug])}", "--plant", bug, "--first")
    assert done.returncode == 1, done.stdout + done.stderr
    assert FINDING.search(done.stdout)


@pytest.mark.thorough
@pytest.mark.parametrize("world", [world.__name__ for world in WORLDS])
def test_the_same_worlds_are_clean_without_bugs(world: str) -> None:
    """What is found comes from the bug."""
    done = ended("0:10", "--world", world)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_bug_has_a_place() -> None:
    """A bug that the worlds cannot find is found by another test, which is named; the table names no other bugs."""
    assert set(FOUND) | set(ELSEWHERE) <= set(PLANTED)
    assert not set(FOUND) & set(ELSEWHERE)
    for place in ELSEWHERE.values():
        assert (ROOT / place).exists()
