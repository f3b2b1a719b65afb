"""The process ends between any two steps of a checkpoint, under load and in the flush of a replay (B1, B4, B5).

The steps are those that docs/architecture.md numbers; module store.checkpoint reports them.
"""

from pathlib import Path

import pytest

from tests.crash.scenarios import die_at_step

STEPS = ["marked", "swapped", "appended", "log synced", "index committed", "cleared", "mark written", "trimmed"]
LEDGER_PUT = 51


@pytest.mark.thorough
@pytest.mark.parametrize("step", STEPS)
def test_b4_b5_an_end_behind_this_step_loses_nothing(step: str, tmp_path: Path) -> None:
    """The mark never exceeds what the disk holds, and replaying twice is the same as replaying once."""
    number = STEPS.index(step) + 1
    assert not die_at_step(tmp_path, number, directories=1 + number % 2)


@pytest.mark.thorough
def test_b4_b5_an_end_between_two_records_of_ledgers_loses_nothing(tmp_path: Path) -> None:
    """The transaction with some of the changed ledgers' records was not committed; replay restores all of them."""
    assert not die_at_step(tmp_path, LEDGER_PUT, directories=2)
