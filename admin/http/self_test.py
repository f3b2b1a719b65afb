"""The bookie tests itself again and again, for the metric `bookie_SERVER_SANITY`. One thread, where it is asked for."""

import logging
import threading

from admin.sanity import sanity
from bookie.server.control import Control

__all__ = ["SelfTest"]

EVERY_S = 60.0
"""Upstream's. The first test comes after as long: a bookie that has just begun may not be registered yet."""
TEST_S = 10.0
"""It has failed when it takes longer."""

log = logging.getLogger(__name__)


class SelfTest:
    """`start`, then `stop`, which waits for a test under way."""

    def __init__(self, control: Control, every_s: float = EVERY_S) -> None:
        self._control = control
        self._every_s = every_s
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="self-test", daemon=True)

    def start(self) -> None:
        """Begin to wait for the first."""
        self._thread.start()

    def stop(self) -> None:
        """Idempotent, also where it was never started."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(self._every_s):
            if self._control.read_only:
                self._control.note_sanity(passed=True)  # as upstream: nobody expects it to take entries
            elif problem := sanity(self._control, TEST_S):
                log.warning("the bookie does not pass its own test; see bkadmin sanity", extra={"problem": problem})
