"""Bugs planted in the bookie prove that the scenarios reveal them: a check that never fails proves nothing.

The bits are those of bookie/_fast/csrc/planted.h.
"""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from bookie._fast.base import process
from tests.crash import scenarios
from tests.crash.power_cut import one_sector
from tests.history.checker import Violation

pytestmark = pytest.mark.skipif(not process.faults(), reason="build with BOOKIE_FAULTS=1")

SEED = str(random.SystemRandom().randrange(1 << 32))
ATTEMPTS = 3
"""Some bugs show only if a kill comes at the right moment; the scenario is then repeated."""
Workload = Callable[[Path, int], list[Violation]]

PLANTED: dict[str, tuple[int, str, Workload]] = {
    "every second sync is left out": (
        1,
        "B1",
        lambda path, bug: scenarios.cut_power(path, f"{SEED}/{path.name}", 5, bug),
    ),
    "groups are acknowledged before they are written": (
        2,
        "B1",
        lambda path, bug: scenarios.cut_power(path, f"{SEED}/{path.name}", 5, bug),
    ),
    "the mark moves before the index is committed": (
        4,
        "B1",
        # The replay may have nothing left to flush.
        lambda path, bug: scenarios.die_at_step(path, 4, directories=1, planted=bug, in_replay=False),
    ),
    "fences are kept in memory only": (
        8,
        "B8",
        lambda path, bug: scenarios.kill_again_and_again(path, f"{SEED}/{path.name}", 3, bug),
    ),
    "a failed read is answered as no such entry": (16, "B7", scenarios.fail_a_read),
    "the master key is not compared": (
        32,
        "B11",
        lambda path, bug: scenarios.kill_again_and_again(path, f"{SEED}/{path.name}", 3, bug),
    ),
    "replay believes torn groups": (
        64,
        "B21",
        lambda path, bug: scenarios.cut_power(path, f"{SEED}/{path.name}", 6, bug, (one_sector,)),
    ),
    "a failed sync is passed over": (
        128,
        "B2",
        lambda path, bug: scenarios.fail_the_disk(path, {"op": "fdatasync", "action": "EIO", "suffix": ".txn"}, bug),
    ),
}


@pytest.mark.thorough
@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_is_found(bug: str, tmp_path: Path) -> None:
    """The scenario that checks the invariant reports that the bookie breaks it."""
    bit, invariant, tell = PLANTED[bug]
    for attempt in range(ATTEMPTS):
        directory = tmp_path / str(attempt)
        directory.mkdir()
        print(f"seed {SEED}/{attempt}")
        if invariant in {violation.invariant for violation in tell(directory, bit)}:
            return
    pytest.fail(f"{ATTEMPTS} times nothing broke {invariant}")
