"""Counts of peers that failed to authenticate, and why, until the log of the data port collects them. Nothing that
they sent is kept. Any thread.
"""

import ipaddress
import threading
from collections import Counter

from bookie._fast.server.rejections import UNNAMED
from bookie.server.logs.rejections import SEVERAL, Rejection

__all__ = ["RefusedLogins"]

ROWS_MAX = 1024


class RefusedLogins:
    """`about(peer, what)` counts, and `drain` returns the counts and resets them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._times: Counter[tuple[str, str]] = Counter()

    def about(self, peer: str, what: str) -> None:
        """Count a rejection. `peer` is host:port, or empty if it was gone; all ports of a host count together."""
        row = (_address(peer), what)
        with self._lock:
            if row not in self._times and len(self._times) >= ROWS_MAX:
                row = (SEVERAL, UNNAMED)
            self._times[row] += 1

    def drain(self) -> list[Rejection]:
        """Return the counts since the last call."""
        with self._lock:
            times, self._times = self._times, Counter()
        return [(address, what, count) for (address, what), count in times.items()]


def _address(peer: str) -> str:
    host = peer.rpartition(":")[0].strip("[]")
    if not host:
        return SEVERAL
    address = ipaddress.ip_address(host)
    return str(getattr(address, "ipv4_mapped", None) or address)
