"""Each planted bug is found at the seed that a hunt once found: `python -m tests.sim 0:20000 --plant NAME`."""

import pytest

from tests.sim.runs import run_seed

FOUND = {
    "ack_before_sync": (0, "L2"),
    "ack_early": (34, "L1"),
    "amnesia": (0, "L2"),
    "change_no_cas": (409, "L9"),
    "close_no_cas": (9, "L5"),
    "copies_unawaited": (2, "L11"),
    "direct_short": (110, "L1"),
    "direct_unasked": (59, "L1"),
    "eio_is_noent": (924, "L14"),
    "force_restarted": (74, "L2"),
    "ignore_fence": (41, "L1"),
    "keep_old_acks": (1549, "L1"),
    "lose_fence": (1689, "L1"),
    "no_digest": (630, "L7"),
    "no_read_fence": (1693, "L9"),
    "no_writeback": (59, "L3"),
    "noent_short": (1, "L9"),
    "second_look_alone": (10, "L15"),
    "short_fence": (172, "L9"),
    "timeout_is_noent": (545, "L9"),
    "trust_own_acks": (773, "L7"),
}


@pytest.mark.parametrize("plant", sorted(FOUND))
def test_a_planted_bug_is_caught(plant: str) -> None:
    """The bug violates its invariant, and the same seed is clean without it."""
    seed, invariant = FOUND[plant]
    assert invariant in {violation.invariant for violation in run_seed(seed, plant).violations}
    assert not run_seed(seed).failed
