"""The process ends while entry logs are created and closed: one for all ledgers, or one per ledger, few at a time
(B1, B4, B5). Module base.crash_steps names the steps.

Logs fill up, ledgers displace each other's logs, write closes arrive, and checkpoints happen in between; every
acknowledged entry is read back, whichever step of a rotation was the last.
"""

from pathlib import Path

import pytest

from tests.crash.scenarios import die_at_step

pytestmark = pytest.mark.crash

STEPS = {
    "created": 41,
    "published": 42,
    "map written": 43,
    "map synced": 44,
    "header written": 45,
    "header synced": 46,
}


@pytest.mark.parametrize("step", STEPS)
def test_b4_b5_an_end_behind_this_step_of_a_rotation_loses_nothing(step: str, tmp_path: Path) -> None:
    """The kill is in a checkpoint under load with two logs at a time, and again in the flush of the replay."""
    settings = {"entryLogPerLedgerEnabled": "true", "maximumNumberOfActiveEntryLogs": "2"}
    assert not die_at_step(tmp_path, STEPS[step], directories=1, settings=settings)


@pytest.mark.parametrize("step", STEPS)
def test_b4_b5_an_end_behind_this_step_of_a_full_log_loses_nothing(step: str, tmp_path: Path) -> None:
    """The same with one log for all ledgers, which ends when it is full; a replay begins one, but fills none."""
    assert not die_at_step(tmp_path, STEPS[step], directories=1, in_replay=step in {"created", "published"})


@pytest.mark.parametrize("step", ["appended", "index committed"])
def test_b4_b5_an_end_in_a_checkpoint_of_many_logs_loses_nothing(step: str, tmp_path: Path) -> None:
    """The same steps of a checkpoint as with one log, with a log per ledger."""
    number = {"appended": 3, "index committed": 5}[step]
    assert not die_at_step(tmp_path, number, directories=2, settings={"entryLogPerLedgerEnabled": "true"})
