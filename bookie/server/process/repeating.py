"""A function that is called at intervals on a thread of its own, until it is stopped."""

import logging
import threading
from collections.abc import Callable

__all__ = ["Repeating"]

log = logging.getLogger(__name__)


class Repeating:
    """Calls a function repeatedly. Call `start`, then `stop`. The first call comes `every_s` seconds after the
    start.

    An exception of a call is logged, and the next call follows in its turn, because the death of a thread would end
    the bookie.
    """

    def __init__(self, name: str, every_s: float, call: Callable[[], object]) -> None:
        self._every_s = every_s
        self._call = call
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread, which waits for the first turn. Call it only once."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread, after a call in progress. Idempotent, even if it was never started."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(self._every_s):
            try:
                self._call()
            except Exception:
                log.exception("a repeated task failed and will be retried", extra={"task": self._thread.name})
