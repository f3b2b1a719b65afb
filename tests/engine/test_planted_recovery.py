"""Bugs of auto-recovery that were mended once: clusters with one of them have a finding, and are clean without it."""

import re
import subprocess
import sys

import pytest

SEEDS = "0:3"
FOUND = {"lost_at_once": "R2", "mark_kept": "R1"}


def played(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Play clusters in a process of their own."""
    words = [sys.executable, "-m", "tests.engine.cluster", SEEDS, *arguments]
    return subprocess.run(words, capture_output=True, text=True, check=False)


@pytest.mark.thorough
@pytest.mark.parametrize("bug", sorted(FOUND))
def test_a_planted_bug_of_auto_recovery_is_caught(bug: str) -> None:
    """The worlds that are drawn for a bug have its finding with it, and none without it."""
    found = played("--plant", bug, "--first")
    assert found.returncode == 1, found.stdout + found.stderr
    assert re.search(rf"^seed \d+: {FOUND[bug]}: ", found.stdout, re.MULTILINE)
    clean = played("--world", bug)
    assert clean.returncode == 0, clean.stdout + clean.stderr
