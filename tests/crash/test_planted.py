"""Bugs planted in the bookie prove that the scenarios reveal them: a check that never fails proves nothing.

tests/fixtures/planted.py describes the bugs. tests/engine/planted.py has others, for simulated worlds.
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
Workload = Callable[[Path, str], list[Violation]]

PLANTED: dict[str, tuple[str, Workload]] = {
    "SKIP_SYNC": (
        "B1",
        lambda path, bug: scenarios.cut_power(path, f"{SEED}/{path.name}", 5, bug),
    ),
    "ACK_EARLY": (
        "B1",
        lambda path, bug: scenarios.cut_power(path, f"{SEED}/{path.name}", 5, bug),
    ),
    "MARK_EARLY": (
        "B1",
        # The replay may have nothing left to flush.
        lambda path, bug: scenarios.die_at_step(path, 4, directories=1, planted=bug, in_replay=False),
    ),
    "FENCE_IN_MEMORY": (
        "B8",
        lambda path, bug: scenarios.kill_again_and_again(path, f"{SEED}/{path.name}", 3, bug),
    ),
    "NO_ENTRY_ON_EIO": ("B7", scenarios.fail_a_read),
    "ANY_KEY": (
        "B11",
        lambda path, bug: scenarios.kill_again_and_again(path, f"{SEED}/{path.name}", 3, bug),
    ),
    "GROUP_UNCHECKED": (
        "B21",
        lambda path, bug: scenarios.cut_power(path, f"{SEED}/{path.name}", 6, bug, (one_sector,)),
    ),
    "ACK_AFTER_FAILURE": (
        "B2",
        lambda path, bug: scenarios.fail_the_disk(path, {"op": "fdatasync", "action": "EIO", "suffix": ".txn"}, bug),
    ),
}


@pytest.mark.thorough
@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_is_found(bug: str, tmp_path: Path) -> None:
    """The scenario that checks the invariant reports that the bookie breaks it."""
    invariant, tell = PLANTED[bug]
    for attempt in range(ATTEMPTS):
        directory = tmp_path / str(attempt)
        directory.mkdir()
        print(f"seed {SEED}/{attempt}")
        if invariant in {violation.invariant for violation in tell(directory, bug)}:
            return
    pytest.fail(f"{ATTEMPTS} times nothing broke {invariant}")
