"""What peers did wrong, in the log: at most one line a second for each address, however much comes.

A thread of its own asks once a second; whoever meets such a peer only counts. `start`, then `stop` (idempotent).
"""

import ipaddress
import logging
from collections.abc import Callable, Iterable

from bookie.server.process.repeating import Repeating

__all__ = ["Rejection", "RejectionLog", "report", "SEVERAL", "spoken"]

PAUSE_S = 1.0

SEVERAL = "several"
"""In place of an address: more than one, or one that is not known."""

Rejection = tuple[str, str, int]
"""The address, what for, how often."""

log = logging.getLogger(__name__)


def report(rejections: Iterable[Rejection]) -> list[dict[str, object]]:
    """One row for each address: how often in all, and what for, the most frequent first."""
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
    """16 bytes of an address as people write it; all zero: several."""
    if not any(ip):
        return SEVERAL
    address = ipaddress.IPv6Address(ip)
    return str(address.ipv4_mapped or address)


class RejectionLog:
    """Drains with `drain` until `stop`, which drains once more; `also` is called each time, too."""

    def __init__(self, drain: Callable[[], Iterable[Rejection]], also: Callable[[], object] = lambda: None) -> None:
        self._drain = drain
        self._also = also
        self._looks = Repeating("rejections", PAUSE_S, self._look)

    def start(self) -> None:
        """Begin to look."""
        self._looks.start()

    def stop(self) -> None:
        """End, and log what is left."""
        self._looks.stop()
        self._look()

    def _look(self) -> None:
        for row in report(self._drain()):
            log.warning("turned away a peer", extra=row)
        self._also()
