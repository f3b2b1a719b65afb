"""Look up the address of a bookie: in its registration, or else in its id, if that is `host:port`."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from bookie.errors import (
    BookieUnavailable,
    BookKeeperError,
    ClientClosed,
    MetadataSerializationError,
    MetadataStoreError,
    ZooKeeperError,
)
from bookie.metadata.bookies.service_info import BookieServiceInfo, parse_service_info

Registered = Callable[[str], Awaitable[bytes | None]]
"""Returns what a bookie publishes, or None if it is not registered."""


STORE_WAIT_S = 1.0
"""How long a look-up waits for the metadata store if there is something to go on with."""
log = logging.getLogger(__name__)


async def _nobody(_: str) -> bytes | None:
    return None


class Found(NamedTuple):
    """What was found out about a bookie. Unless its registration was `read`, only its address is known."""

    info: BookieServiceInfo
    read: bool


def resolver(registered: Registered | None = None) -> Callable[[str], Awaitable[Found]]:
    """Return a function that looks up one bookie in the metadata store, each time anew.

    If the store fails, is closed, or does not answer within a second, it returns what the bookie published when it was
    looked up last, or the address in its id. It raises BookieUnavailable if no address is known, and the errors of the
    metadata store.
    """
    look = registered or _nobody
    seen: dict[str, Found] = {}

    async def resolve(bookie: str) -> Found:
        known = seen.get(bookie) or _named(bookie)
        published = None
        try:
            async with asyncio.timeout(None if known is None else STORE_WAIT_S):
                published = await look(bookie)
            seen[bookie] = found = Found(parse_service_info(bookie, published or b""), published is not None)
        except MetadataSerializationError as error:
            if published is None:
                raise BookieUnavailable(f"{bookie}: the bookie is down: it is not registered") from error
            raise BookieUnavailable(f"{bookie}: no address is known ({error}); check its version") from error
        except (ClientClosed, MetadataStoreError, TimeoutError, ZooKeeperError) as error:
            if known is None:
                raise
            reason = error if isinstance(error, BookKeeperError) else f"no answer within {STORE_WAIT_S:g} s"
            log.warning("bookie %s is not looked up, and its last known address is used: %s", bookie, reason)
            return known
        return found

    return resolve


def _named(bookie: str) -> Found | None:
    """Return the address in a bookie's id, if that is `host:port`."""
    try:
        return Found(parse_service_info(bookie, b""), False)
    except MetadataSerializationError:
        return None
