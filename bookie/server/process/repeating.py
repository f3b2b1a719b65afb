"""A function called every so often on a thread of its own, until it is told to stop."""

import logging
import threading
from collections.abc import Callable

__all__ = ["Repeating"]

log = logging.getLogger(__name__)


class Repeating:
    """`start`, then `stop`. The first call comes `every_s` seconds after the start.

    What a call raises is logged, and the next one comes in its turn: a thread that died would end the bookie.
    """

    def __init__(self, name: str, every_s: float, call: Callable[[], object]) -> None:
        self._every_s = every_s
        self._call = call
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin to wait for the first turn. Once only."""
        self._thread.start()

    def stop(self) -> None:
        """Wait for a call under way. Idempotent, also where it was never started."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(self._every_s):
            try:
                self._call()
            except Exception:
                log.exception("a repeated task failed, it is tried again", extra={"task": self._thread.name})
