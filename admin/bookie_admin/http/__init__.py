"""The HTTP port: Apache BookKeeper's admin endpoints, probes, metrics and the console. It is imported only if it is
enabled. Begin with `plane`.

    plane        the server: one thread with an event loop, found through the entry-point group `bookie.planes`
    connection   one connection and its deadlines
    application  routing, authorization, and the headers of all responses
    hosts        protection against requests from pages of other sites
    request      a request as endpoints see it, and their replies
    threads      the threads that endpoints run in
    routes       the endpoint of each path
    probes       liveness, health, readiness and metrics
    this_bookie  endpoints about the bookie itself
    ledgers      endpoints about the cluster's ledgers
    cluster      endpoints about the cluster's bookies
    recovery     endpoints about auto-recovery
    moving       bookies that are being decommissioned
    views        endpoints of the console that Apache BookKeeper does not have
    searching    searching for ledgers
    logs         endpoints of the console about named logs
    racks        the racks of bookies
    files        the files of the console
    self_test    the periodic sanity test
"""

from typing import TYPE_CHECKING

from bookie.server.control import Control

if TYPE_CHECKING:
    from bookie_admin.http.plane import HttpPlane

__all__ = ["open_plane"]


def open_plane(control: Control) -> "HttpPlane | None":
    """Return the HTTP plane of a bookie; None if httpServerEnabled is false. The entry point of the group
    `bookie.planes`.

    Raises:
        StartRefused: the configuration of the port is invalid.
    """
    if not control.http.enabled:
        return None
    from bookie_admin.http.plane import HttpPlane  # noqa: PLC0415  # most bookies do not use it

    return HttpPlane(control)
