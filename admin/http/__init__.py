"""The HTTP port: upstream's admin endpoints, probes, metrics and the console. Imported only where it is switched on.

plane        the server: one thread with an event loop, found through the group `bookie.planes`
connection   one connection, and its deadlines
application  routes; who may call them; headers of all answers
asking       a request as endpoints see it, their answers, and the threads that they run in
probes       is it alive, is it ready, what does it measure
this_bookie  endpoints about the bookie itself
ledgers      endpoints about the cluster's ledgers
cluster      endpoints about the cluster's bookies
recovery     endpoints about auto-recovery
moving       bookies that are being emptied
views        what the console asks for and upstream has not
searching    ledgers that fit a search
racks        where bookies stand
routes       which path leads to which endpoint
files        the console's own files
self_test    the bookie tests itself again and again
"""

from typing import TYPE_CHECKING

from bookie.server.control import Control

if TYPE_CHECKING:
    from admin.http.plane import HttpPlane

__all__ = ["open_plane"]


def open_plane(control: Control) -> "HttpPlane | None":
    """The plane of this bookie; None where httpServerEnabled is false. Raises StartRefused."""
    if not control.http.enabled:
        return None
    from admin.http.plane import HttpPlane  # noqa: PLC0415 - most bookies start without

    return HttpPlane(control)
