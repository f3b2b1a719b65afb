"""Run a client of bookies against one scripted bookie, whose steps block a thread."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from bookie.client.bookies import BookieClient
from bookie.client.config import ClientConfig
from bookie.metadata.bookies.service_info import BookieServiceInfo, bookie_endpoint
from tests.client.v3_peer import V3Peer
from tests.client.wire_peer import WirePeer

T = TypeVar("T")


def play(
    peer: WirePeer,
    work: Callable[[BookieClient, str], Coroutine[Any, Any, None]],
    *,
    extensions: str = "",
    **settings: Any,
) -> None:
    """Run `work` with a client and the id of the scripted bookie."""
    info = BookieServiceInfo((bookie_endpoint("127.0.0.1", peer.port),), {"pybk.v3.ext": extensions}).to_bytes()

    async def registered(_: str) -> bytes:
        return info

    async def main() -> None:
        config = ClientConfig(use_v2_wire_protocol=not isinstance(peer, V3Peer), **settings)
        async with BookieClient(config, registered) as client:
            await work(client, f"127.0.0.1:{peer.port}")

    asyncio.run(main())


async def there(call: Callable[..., T], *arguments: Any, **options: Any) -> T:
    """Run the peer's step while the event loop runs."""
    return await asyncio.to_thread(call, *arguments, **options)


def started(call: Awaitable[T]) -> asyncio.Future[T]:
    """Start a request."""
    return asyncio.ensure_future(call)
