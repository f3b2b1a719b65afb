"""The hosts of bookies, as their registrations tell them, or else their ids. Event loop.

A bookie id need not be an address (`bookieId`), and a bookie may have moved to another host since it was last
registered.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection

from bookie.client.placement.locations import host_of
from bookie.errors import BookKeeperError, ClientClosed
from bookie.metadata.bookies.service_info import parse_service_info

__all__ = ["hosts_of", "Registered"]

Registered = Callable[[str], Awaitable[bytes | None]]
"""Returns what a bookie publishes, or None if it is not registered."""


async def hosts_of(bookies: Collection[str], registered: Registered) -> tuple[dict[str, str], frozenset[str]]:
    """Return the hosts by bookie, and the bookies whose registration could not be read now. Raises ClientClosed.

    The host in an id `host:port` counts only if the registration has none.
    """
    found: dict[str, str] = {}
    unread: set[str] = set()

    async def look(bookie: str) -> None:
        host = host_of(bookie)
        try:
            data = await registered(bookie)
            end = parse_service_info(bookie, data).client_endpoint() if data else None
            host = end.host if end is not None and end.host else host
        except ClientClosed:
            raise
        except BookKeeperError as error:
            if error.retriable:
                unread.add(bookie)
        if host:
            found[bookie] = host

    await asyncio.gather(*(look(bookie) for bookie in sorted(bookies)))
    return found, frozenset(unread)
