"""The bookie tests itself again and again, for the metric `bookie_SERVER_SANITY`. One thread, where it is asked for."""

import logging

from admin.sanity import sanity
from bookie.server.control import Control
from bookie.server.process.repeating import Repeating

__all__ = ["self_test"]

EVERY_S = 60.0
"""Upstream's. The first test comes after as long: a bookie that has just begun may not be registered yet."""
TEST_S = 10.0
"""A test that takes longer has failed."""

log = logging.getLogger(__name__)


def self_test(control: Control, every_s: float = EVERY_S) -> Repeating:
    """To be started, and stopped before the bookie."""

    def test() -> None:
        if control.read_only:
            control.note_sanity(passed=True)  # as upstream: nobody expects it to take entries
        elif problem := sanity(control, TEST_S):
            log.warning("the bookie does not pass its own test; see bkadmin sanity", extra={"problem": problem})

    return Repeating("self-test", every_s, test)
