"""The racks of bookies, by the resolver that this bookie's configuration names. Runs on `RequestThreads`."""

import threading

from bookie.client.config import ClientConfig
from bookie.client.placement.locations import Locations
from bookie.client.placement.resolver import resolver_for
from bookie.errors import ConfigurationError
from bookie_admin.http.request import HttpRequest

__all__ = ["racks_of"]

KEYS = ("reppDnsResolverClass", "networkTopologyScriptFileName")
_lock = threading.Lock()
_known: dict[tuple[str, ...], Locations] = {}


def racks_of(request: HttpRequest, bookies: list[str]) -> dict[str, str]:
    """Return the racks of bookies as far as they are known; empty if no resolver is configured. A bookie is resolved
    once.
    """
    given = tuple(request.control.configuration()[key] for key in KEYS)
    if not any(given):
        return {}
    with _lock:
        if given not in _known:
            try:
                resolver = resolver_for(ClientConfig.of({k: v for k, v in zip(KEYS, given, strict=True) if v}))
            except ConfigurationError:
                return {}
            _known[given] = Locations(resolver, "")
        locations = _known[given]
        locations.learn(bookies)
        return {one: rack for one in bookies if (rack := locations.of(one))}
