"""What peers did wrong, in the log: at most one line a second for each address, however much comes.

A thread of its own asks the I/O loops once a second; they only count. `start`, then `stop` (idempotent).
"""

import ipaddress
import logging
import threading
from collections.abc import Callable, Iterable

from bookie._fast.complaints import REASONS_SPOKEN

__all__ = ["Complaint", "ComplaintLog", "report"]

PAUSE_S = 1.0

Complaint = tuple[bytes, int, int]
"""16 address bytes (all zero: several addresses), index of the reason, how often."""

log = logging.getLogger(__name__)


def report(complaints: Iterable[Complaint]) -> list[dict[str, object]]:
    """One row for each address: how often in all, and what for most often."""
    by_address: dict[bytes, list[tuple[int, int]]] = {}
    for ip, reason, times in complaints:
        by_address.setdefault(ip, []).append((times, reason))
    return [
        {"peer": spoken(ip), "times": sum(times for times, _ in counts), "reason": REASONS_SPOKEN[max(counts)[1]]}
        for ip, counts in by_address.items()
    ]


def spoken(ip: bytes) -> str:
    """The address as people write it."""
    if not any(ip):
        return "several"
    address = ipaddress.IPv6Address(ip)
    return str(address.ipv4_mapped or address)


class ComplaintLog:
    """Drains with `drain` until `stop`, which drains once more; `also` is called each time, too."""

    def __init__(self, drain: Callable[[], Iterable[Complaint]], also: Callable[[], object] = lambda: None) -> None:
        self._drain = drain
        self._also = also
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="complaints", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Log what is left and end."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        more = True
        while more:
            more = not self._ended.wait(PAUSE_S)
            for row in report(self._drain()):
                log.warning("turned away a peer", extra=row)
            self._also()
