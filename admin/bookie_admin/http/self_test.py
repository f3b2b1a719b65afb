"""The periodic sanity test, for the metric `bookie_SERVER_SANITY`. It runs in a thread of its own, if enabled."""

import logging

from bookie.server.control import Control
from bookie.server.process.repeating import Repeating
from bookie_admin.sanity import sanity

__all__ = ["self_test"]

EVERY_S = 60.0
"""The interval of Apache BookKeeper. The first test also waits that long, because a bookie that has just started may
not be registered yet.
"""
TEST_S = 10.0
"""A test that takes longer counts as failed."""

log = logging.getLogger(__name__)


def self_test(control: Control, every_s: float = EVERY_S) -> Repeating:
    """Return the periodic test of a bookie. The caller starts it, and stops it before the bookie."""

    def test() -> None:
        if control.read_only:
            control.note_sanity(
                passed=True
            )  # as in Apache BookKeeper: a read-only bookie is not expected to accept entries
        elif problem := sanity(control, TEST_S):
            log.warning("the bookie failed its sanity test; run bkadmin sanity", extra={"problem": problem})

    return Repeating("self-test", every_s, test)
