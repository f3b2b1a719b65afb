"""Log lines about peers that are not let in: one a second for each address at most, nothing of what they sent.

Any thread.
"""

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable

__all__ = ["Rejections"]

EVERY_S = 1.0
ADDRESSES_MAX = 1024


class Rejections:
    """`about(peer, what)` logs a warning, or counts it for the next one."""

    def __init__(self, log: logging.Logger, clock: Callable[[], float] = time.monotonic) -> None:
        self._log = log
        self._clock = clock
        self._lock = threading.Lock()
        self._last: OrderedDict[str, tuple[float, int]] = OrderedDict()  # host -> when, how many unsaid

    def about(self, peer: str, what: str) -> None:
        """`peer` is host:port; all ports of a host count together."""
        host = peer.rpartition(":")[0]
        now = self._clock()
        with self._lock:
            last, unsaid = self._last.get(host, (now - EVERY_S, 0))
            speak = now - last >= EVERY_S
            self._last[host] = (now, 0) if speak else (last, unsaid + 1)
            self._last.move_to_end(host)
            if len(self._last) > ADDRESSES_MAX:
                self._last.popitem(last=False)
        if speak:
            self._log.warning("%s", what, extra={"peer": peer, "unsaid": unsaid})
