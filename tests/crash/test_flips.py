"""Single bits of each kind of file are flipped in a serving bookie: no wrong answer, wrong denial or crash, and all
damage in use is found and repaired. BOOKIE_FLIPS sets their number (20); BOOKIE_SEED repeats a run.
"""

import os
import random
from pathlib import Path

import pytest

from tests.crash.flips.__main__ import run, table
from tests.crash.flips.files import SHARES

pytestmark = [
    pytest.mark.crash,
    pytest.mark.leaks("gRPC keeps its own threads and their descriptors as long as the process lives"),
]

FLIPS = int(os.environ.get("BOOKIE_FLIPS", "20"))
SEED = int(os.environ.get("BOOKIE_SEED") or random.SystemRandom().randrange(1 << 32))


def test_flips(tmp_path: Path) -> None:
    """Logs and index are damaged while the bookie serves, the others between a kill -9 and a start."""
    tallies = run(tmp_path, SEED, list(SHARES), FLIPS)
    problems = [problem for tally in tallies.values() for problem in tally.problems]
    assert not problems, f"seed {SEED}\n{table(tallies)}\n" + "\n".join(problems)
