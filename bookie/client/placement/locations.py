"""The network locations of bookies, as a resolver reported them, kept as long as the client lives.

`learn` may wait for the resolver, so a client calls it off its event loop before it informs the policy of new
bookies; locations that are known cost nothing. One thread at a time.
"""

import logging
import re
import socket
from collections.abc import Callable, Collection, Mapping

from bookie.client.placement.resolver import Resolver

__all__ = ["host_of", "Locations"]

PATH = re.compile(r"(/[^/\s]+)+")

log = logging.getLogger(__name__)


def host_of(bookie: str) -> str | None:
    """Return the host of a bookie id `host:port`, or None for another kind of id."""
    host, colon, port = bookie.rpartition(":")
    return host.strip("[]") if colon and port.isdigit() else None


def address_of(host: str) -> str:
    """Return the first IPv4 address of a host, else any address, or the host itself if its name cannot be resolved."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        return host
    found.sort(key=lambda one: one[0] != socket.AF_INET)
    return str(found[0][4][0])


class Locations:
    """The locations of bookies. A bookie that left keeps its location, since its ledgers still name it."""

    def __init__(self, resolver: Resolver | None, default: str, hosts: Callable[[str], str | None] = host_of) -> None:
        """`default` is the location of bookies that cannot be resolved; `hosts` returns a bookie's host, or None."""
        self.default = default
        self._resolver = resolver
        self._hosts = hosts
        self._known: dict[str, str] = {}
        self._host_of: dict[str, str] = {}
        self._doubted: set[str] = set()

    @property
    def asks(self) -> bool:
        """Whether there is a resolver, which may be slow."""
        return self._resolver is not None

    def unknown(self, bookies: Collection[str]) -> frozenset[str]:
        """Return those bookies that `learn` would look up."""
        return frozenset(bookie for bookie in bookies if bookie not in self._known or bookie in self._doubted)

    def doubt(self, bookies: Collection[str]) -> None:
        """Let bookies be looked up again, since they registered anew and may have moved to another host."""
        self._doubted.update(self._known.keys() & bookies)

    def learn(self, bookies: Collection[str], hosts: Mapping[str, str] | None = None) -> None:
        """Look up the bookies whose location is unknown or doubted. `hosts` are their hosts, where these are known.

        A bookie that has not moved is not looked up. Those that cannot be resolved are looked up again the next time.
        """
        new = sorted(self.unknown(bookies))
        if self._resolver is None or not new:
            return
        hosts_now = {
            bookie: host for bookie in new if (host := (hosts or {}).get(bookie) or self._hosts(bookie)) is not None
        }
        moved = {bookie: host for bookie, host in hosts_now.items() if self._host_of.get(bookie) != host}
        found = self._resolve(list(dict.fromkeys(moved.values())))
        self._doubted.difference_update(hosts_now)
        for bookie in new:
            if bookie in hosts_now and bookie not in moved:
                continue
            location = found.get(moved.get(bookie, ""))
            if location is not None:
                self._known[bookie], self._host_of[bookie] = location, moved[bookie]
                continue
            self._known.pop(bookie, None)
            log.warning("no location found for a bookie bookieId=%s used=%s", bookie, self.default)

    def of(self, bookie: str) -> str:
        """Return a bookie's location, or the default if it is unknown."""
        return self._known.get(bookie, self.default)

    def local(self, *, by_name: bool) -> str:
        """Return the location of this machine."""
        if self._resolver is None:
            return self.default
        name = socket.gethostname()
        host = socket.getfqdn(name) if by_name else address_of(name)
        return self._resolve([host]).get(host, self.default)

    def _resolve(self, hosts: list[str]) -> dict[str, str]:
        assert self._resolver is not None
        names = hosts if self._resolver.by_name else [address_of(host) for host in hosts]
        answers = self._resolver.resolve(names) if names else []
        if answers is None or len(answers) != len(hosts):
            return {}
        found = {}
        for host, location in zip(hosts, answers, strict=True):
            path = (location or "").rstrip("/")
            if PATH.fullmatch(path):
                found[host] = path
            elif path:
                log.warning(
                    "location of a host is invalid host=%s location=%r: it must be /rack or /region/rack",
                    host,
                    location,
                )
        return found
