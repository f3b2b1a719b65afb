"""Where a bookie is: by its registration, else by its id, where that is `host:port`."""

from collections.abc import Awaitable, Callable

from bookie.errors import BookieUnavailable, MetadataSerializationError
from bookie.metadata.bookies.service_info import BookieServiceInfo, parse_service_info

Registered = Callable[[str], Awaitable[bytes | None]]
"""What a bookie publishes; None: it is not registered."""


async def _nobody(_: str) -> bytes | None:
    return None


def resolver(registered: Registered | None = None) -> Callable[[str], Awaitable[BookieServiceInfo]]:
    """Looks up one bookie, anew each time. BookieUnavailable; what the metadata store raises."""
    look = registered or _nobody

    async def resolve(bookie: str) -> BookieServiceInfo:
        try:
            return parse_service_info(bookie, await look(bookie) or b"")
        except MetadataSerializationError as error:
            raise BookieUnavailable(f"{bookie}: no address is known ({error}); is it registered?") from error

    return resolve
