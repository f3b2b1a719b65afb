"""Single bits flipped in a serving bookie, some of each kind: no wrong answer, no wrong denial, no end of the process,
and all that is in use is found and repaired. BOOKIE_FLIPS says how many (20), BOOKIE_SEED repeats a run.
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
    """Logs and index while it serves, the others between a kill -9 and a start."""
    tallies = run(tmp_path, SEED, list(SHARES), FLIPS)
    problems = [problem for tally in tallies.values() for problem in tally.problems]
    assert not problems, f"seed {SEED}\n{table(tallies)}\n" + "\n".join(problems)
