"""The division of the process's descriptors among its ports. Main thread, before any port opens.

If everything that is configured fits, each port gets it. Otherwise the data port keeps half, and each of the others
gets at most an eighth, so that no flood of connections to one port takes the descriptors of another, or of probes.
"""

import logging
import resource
from dataclasses import replace
from typing import TypeVar

from bookie._fast.base import spare_descriptors
from bookie.server.configuration.settings import AdminSettings, HttpSettings, Settings

__all__ = ["shared_out"]

FILES = 64
"""Descriptors of journals, index and metadata store, in addition to the entry logs that are open for reads."""
ADMIN_EACH = 3
"""Descriptors per connection of the admin port: its peer's, and both ends of the connection from there to gRPC."""
SHARE = 8
T = TypeVar("T", AdminSettings, HttpSettings)
log = logging.getLogger(__name__)


def shared_out(settings: Settings) -> Settings:
    """Return settings with limits of connections, and of descriptors, that this process can have."""
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    own = settings.storage.open_logs_max + FILES
    kept = spare_descriptors.kept()
    admin, http = settings.admin, settings.http
    if most != resource.RLIM_INFINITY:
        free = most - own - kept - settings.network.connections_max
        if free < ADMIN_EACH * _admin_connections(settings) + _http_connections(settings):
            admin = _at_most("admin", admin, most // SHARE // ADMIN_EACH, most)
            http = _at_most("http", http, most // SHARE, most)
    settings = replace(settings, admin=admin, http=http)
    others = ADMIN_EACH * _admin_connections(settings) + _http_connections(settings)
    return replace(settings, network=replace(settings.network, descriptors_left=own + kept + others))


def _admin_connections(settings: Settings) -> int:
    return settings.admin.connections_max if settings.server.admin_port >= 0 else 0


def _http_connections(settings: Settings) -> int:
    return settings.http.connections_max if settings.http.enabled else 0


def _at_most(port: str, wanted: T, connections: int, descriptors: int) -> T:
    if wanted.connections_max <= connections:
        return wanted
    log.warning(
        "the limit of file descriptors is too low for the connections configured for all ports; raise it in the system",
        extra={"port": port, "connections": connections, "wanted": wanted.connections_max, "descriptors": descriptors},
    )
    of_address = max(1, wanted.connections_per_address_max * connections // wanted.connections_max)
    return replace(wanted, connections_max=connections, connections_per_address_max=of_address)
