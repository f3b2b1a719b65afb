"""Establish the connection of a link: TCP, then encryption, then authentication, all within the connect timeout.

Names are looked up, and files of certificates read, on asyncio's threads. When the interpreter exits, these accept no
more work, but announcements may still need a connection: then a name leads to the address of its last connection.
"""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from bookie.auth.provider import ClientProvider
from bookie.client.bookies.link import Link
from bookie.client.direct.connect import DirectConnector
from bookie.client.wire.request import Wire
from bookie.client.wire.security import FRAME_PREFIX, conversation, start_tls_granted, start_tls_request, start_tls_size
from bookie.client.wire.tls import Tls, TlsContexts, handshake_error
from bookie.client.wire.unreachable import unreachable
from bookie.errors import BookieUnavailable, BookKeeperError

DIRECT_TIMEOUT_S = 10.0
"""The time limit of establishing a direct connection, in seconds, if `connect_timeout_s` is longer."""
PATIENCE_S = 0.25
"""How long a direct read waits for a bookie that sends nothing, in seconds. Then the event loop does the read."""

P = TypeVar("P", bound=asyncio.BaseProtocol)


class Connector:
    """Connects links to bookies. `timeout_s` bounds all steps together, in seconds; 0 means no limit."""

    def __init__(self, timeout_s: float, tls: Tls | None = None, auth: ClientProvider | None = None) -> None:
        self.timeout_s = timeout_s
        self.auth = auth
        self._contexts = TlsContexts(tls) if tls is not None else None
        self._addresses: dict[str, str] = {}
        """The address of the last connection to each host name."""

    def direct(self, wire: Wire) -> DirectConnector:
        """Return how direct connections are established in the same way."""
        timeout_s = min(self.timeout_s or DIRECT_TIMEOUT_S, DIRECT_TIMEOUT_S)
        return DirectConnector(wire, timeout_s, PATIENCE_S, self.auth, self._contexts)

    async def connect(self, link: Link[Any], host: str, port: int) -> None:
        """Open the link, or fail it with BookieUnavailable, SecurityError, UnauthorizedAccess or ConfigurationError."""
        address = f"{host}:{port}"
        try:
            async with asyncio.timeout(self.timeout_s or None):
                if self._contexts is None:
                    await self._connected(lambda: link, host, port)
                else:
                    await self._encrypted(link, self._contexts, host, port)
                if self.auth is not None:
                    await self._authenticate(link, self.auth, host, address)
        except BookKeeperError as error:
            link.fail(error)
        except TimeoutError:
            link.fail(
                BookieUnavailable(f"{address}: the bookie does not answer: no connection within {self.timeout_s:g} s")
            )
        except OSError as error:
            link.fail(unreachable(address, error))
        else:
            link.opened()

    async def _connected(self, protocol: Callable[[], P], host: str, port: int) -> tuple[asyncio.Transport, P]:
        loop = asyncio.get_running_loop()
        try:
            transport, made = await loop.create_connection(protocol, host, port)
        except RuntimeError as error:
            if host not in self._addresses:
                raise BookieUnavailable(f"{host}:{port}: its name cannot be looked up any more: {error}") from error
            return await loop.create_connection(protocol, self._addresses[host], port)
        self._addresses[host] = transport.get_extra_info("peername", (host,))[0]
        return transport, made

    async def _encrypted(self, link: Link[Any], contexts: TlsContexts, host: str, port: int) -> None:
        loop = asyncio.get_running_loop()
        try:
            context = await asyncio.to_thread(contexts.now)
        except RuntimeError:
            context = contexts.now()
        transport, clear = await self._connected(_ClearText, host, port)
        address = f"{host}:{port}"
        try:
            transport.write(start_tls_request())
            size = start_tls_size(await clear.exactly(FRAME_PREFIX, address), address)
            start_tls_granted(await clear.exactly(size, address), address)
            try:
                encrypted = await loop.start_tls(transport, link, context, server_hostname=host)
            except OSError as error:
                raise handshake_error(error, host) from error
        except BaseException:
            transport.abort()
            raise
        if encrypted is None:  # it was closed in the meantime
            raise BookieUnavailable(f"{address}: connection lost during the TLS handshake")
        link.connection_made(encrypted)

    async def _authenticate(self, link: Link[Any], provider: ClientProvider, host: str, address: str) -> None:
        talk = conversation(provider, host, address)
        token = next(talk, None)
        while token is not None:
            answer = await link.submit(link.wire.auth(provider.plugin_name, token, self.timeout_s), at_once=True)
            try:
                token = talk.send(answer)
            except StopIteration:
                return


class _ClearText(asyncio.Protocol):
    """Receives what the bookie sends in clear text before the handshake."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._lost: Exception | None = None
        self._changed = asyncio.Event()

    def data_received(self, data: bytes) -> None:
        self._data += data
        self._changed.set()

    def connection_lost(self, error: Exception | None) -> None:
        self._lost = error or ConnectionResetError("the bookie closed it")
        self._changed.set()

    async def exactly(self, size: int, address: str) -> bytes:
        """Return the next `size` bytes. Raises BookieUnavailable if the connection ends before."""
        while len(self._data) < size:
            if self._lost is not None:
                raise BookieUnavailable(f"{address}: connection lost at START_TLS ({self._lost}); does it speak V3?")
            self._changed.clear()
            await self._changed.wait()
        data = bytes(self._data[:size])
        del self._data[:size]
        return data
