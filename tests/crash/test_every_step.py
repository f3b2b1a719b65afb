"""All steps between which tests end the process are covered.

The steps of the tools and of taking over Java's disks are covered by name in tests/storage, those of a collection's
policy in test_garbage_steps.py, and calls of module base.file in test_file_steps.py.
"""

import re
from pathlib import Path

from tests.crash import test_checkpoint_steps, test_collection_steps, test_log_rotation
from tests.fast import test_carry_over
from tests.storage import test_index_repair

FAST = Path(__file__).resolve().parents[2] / "bookie/_fast"


def test_every_step_of_the_compiled_modules_is_killed() -> None:
    """Flush, rotation, compaction, deletion, repair: the numbers in the contracts are those in the tests."""
    contracts = (FAST / "base/crash_steps.pxd").read_text()
    there = {int(number) for number in re.findall(r"^    STEP_\w+ = (\d+)", contracts, re.MULTILINE)}
    killed = {*range(1, len(test_checkpoint_steps.STEPS) + 1), test_checkpoint_steps.LEDGER_PUT}
    killed |= {*test_collection_steps.STEPS.values(), *test_log_rotation.STEPS.values(), *test_index_repair.STEPS}
    killed |= set(test_carry_over.STEPS)
    assert there == killed
