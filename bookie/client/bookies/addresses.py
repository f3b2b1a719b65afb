"""Look up the address of a bookie: in its registration, or else in its id, if that is `host:port`."""

from collections.abc import Awaitable, Callable

from bookie.errors import BookieUnavailable, MetadataSerializationError
from bookie.metadata.bookies.service_info import BookieServiceInfo, parse_service_info

Registered = Callable[[str], Awaitable[bytes | None]]
"""Returns what a bookie publishes, or None if it is not registered."""


async def _nobody(_: str) -> bytes | None:
    return None


def resolver(registered: Registered | None = None) -> Callable[[str], Awaitable[BookieServiceInfo]]:
    """Return a function that looks up one bookie, each time anew.

    It raises BookieUnavailable if no address is known, and the errors of the metadata store.
    """
    look = registered or _nobody

    async def resolve(bookie: str) -> BookieServiceInfo:
        try:
            return parse_service_info(bookie, await look(bookie) or b"")
        except MetadataSerializationError as error:
            raise BookieUnavailable(f"{bookie}: no address is known ({error}); is it registered?") from error

    return resolve
