"""The log of peers that did something wrong: at most one line per second for each address, however many events there
are.

A thread collects the counts once a second; the I/O loops only count. Call `start`, then `stop` (idempotent).
"""

import ipaddress
import logging
from collections.abc import Callable, Iterable

from bookie.server.process.repeating import Repeating

__all__ = ["Rejection", "RejectionLog", "report", "SEVERAL", "spoken"]

PAUSE_S = 1.0

SEVERAL = "several"
"""Used in place of an address for several addresses, or an unknown one."""

Rejection = tuple[str, str, int]
"""The address, the reason, and how often."""

log = logging.getLogger(__name__)


def report(rejections: Iterable[Rejection]) -> list[dict[str, object]]:
    """Return one row per address: the total number, and the reasons, the most frequent first."""
    by_address: dict[str, list[tuple[int, str]]] = {}
    for address, reason, times in rejections:
        by_address.setdefault(address, []).append((times, reason))
    return [
        {
            "peer": address,
            "times": sum(times for times, _ in counts),
            "reason": "; ".join(dict.fromkeys(reason for _, reason in sorted(counts, reverse=True))),
        }
        for address, counts in by_address.items()
    ]


def spoken(ip: bytes) -> str:
    """Format the 16 bytes of an address for people; all zeros mean several."""
    if not any(ip):
        return SEVERAL
    address = ipaddress.IPv6Address(ip)
    return str(address.ipv4_mapped or address)


class RejectionLog:
    """Calls `drain` every second until `stop`, which calls it once more; `also` is called each time, too."""

    def __init__(self, drain: Callable[[], Iterable[Rejection]], also: Callable[[], object] = lambda: None) -> None:
        self._drain = drain
        self._also = also
        self._looks = Repeating("rejections", PAUSE_S, self._look)

    def start(self) -> None:
        """Start the thread."""
        self._looks.start()

    def stop(self) -> None:
        """Stop the thread, and log the rest."""
        self._looks.stop()
        self._look()

    def _look(self) -> None:
        for row in report(self._drain()):
            log.warning("turned away a peer", extra=row)
        self._also()
