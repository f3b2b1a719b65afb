"""Establish a direct connection: TCP, then encryption, then authentication. It runs on a thread of its own."""

import contextlib
import socket
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bookie._fast.client import framing_v2
from bookie._fast.client.direct_link import DirectLink
from bookie.auth.provider import ClientProvider
from bookie.client.wire.request import Wire
from bookie.client.wire.security import FRAME_PREFIX, authenticate
from bookie.client.wire.tls import TlsContexts
from bookie.client.wire.unreachable import unreachable
from bookie.errors import BookieUnavailable

if TYPE_CHECKING:
    from bookie.client.direct.encrypt import DirectTls

__all__ = ["DirectConnector", "Endpoint"]


class Endpoint(NamedTuple):
    """Where a bookie listens: its host as it is registered, and the address that the event loop has connected to.

    So no name is resolved again, which could take longer than a call may.
    """

    host: str
    address: tuple[str, int]


class DirectConnector:
    """How direct connections to one bookie are made. Any thread.

    `wire` is used for its frames of authentication only. The times are in seconds: `timeout_s` bounds all steps
    together, and `patience_s` is how long a bookie may send nothing while a response is due. With `contexts`, the
    connections are encrypted.
    """

    def __init__(
        self,
        wire: Wire,
        timeout_s: float,
        patience_s: float,
        auth: ClientProvider | None,
        contexts: TlsContexts | None = None,
    ) -> None:
        self._wire = wire
        self._timeout_s = timeout_s
        self._patience_s = patience_s
        self._auth = auth
        self._contexts = contexts
        self._tls: DirectTls | None = None

    def connect(self, endpoint: Endpoint) -> DirectLink:
        """Return an open connection.

        Raises:
            BookieUnavailable: The connection failed, or the bookie did not answer in time.
            UnauthorizedAccess: The bookie does not accept the client, or the client not the bookie.
            SecurityError: The same, where connections are encrypted.
            ConfigurationError: A file for TLS cannot be used.
        """
        host, (name, port) = endpoint
        address = f"{host}:{port}"
        until = time.monotonic() + self._timeout_s
        try:
            sock = socket.create_connection((name, port), timeout=self._timeout_s)
        except OSError as error:
            raise unreachable(address, error) from error
        with contextlib.ExitStack() as failing:
            failing.callback(sock.close)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            owner: Any = sock
            if self._contexts is None:
                sock.settimeout(None)
            else:
                owner = self._encrypted(sock, self._contexts, host, until)
            encrypted, v3 = owner is not sock, self._wire.by_transaction
            link = DirectLink(owner, self._wire.frame_bytes_max, self._patience_s, v3=v3, encrypted=encrypted)
            if self._auth is not None:
                authenticate(self._auth, host, address, lambda *sent: self._exchange(link, address, until, *sent))
            failing.pop_all()
        return link

    def _encrypted(self, sock: socket.socket, contexts: TlsContexts, host: str, until: float) -> Any:
        """Return the encrypted connection over a socket."""
        if self._tls is None:
            try:
                from bookie.client.direct.encrypt import DirectTls  # noqa: PLC0415 - loading OpenSSL takes a while

                self._tls = DirectTls(contexts)
            except ImportError as error:
                raise BookieUnavailable(f"{host}: direct connections cannot be encrypted: {error}") from error
        return self._tls.encrypt(sock, host, until)

    def _exchange(self, link: DirectLink, address: str, until: float, plugin: str, token: bytes) -> tuple[str, bytes]:
        """Send a token, and return plugin name and token of the response."""
        request = self._wire.auth(plugin, token, self._timeout_s)
        body = link.exchange(request.frame, until - time.monotonic())
        if body is None:
            raise BookieUnavailable(f"{address}: {request}: the connection was lost, or no answer came in time")
        rows: Any = np.zeros(1, dtype=framing_v2.RESPONSE)
        frame = len(body).to_bytes(FRAME_PREFIX, "big") + body
        try:
            self._wire.cut(frame, self._wire.frame_bytes_max, rows)
        except ValueError as error:
            raise BookieUnavailable(f"{address}: {request}: {error}") from error
        row = rows.tolist()[0]
        if self._wire.key(row) != request.key:
            raise BookieUnavailable(f"{address}: {request}: the response belongs to another request")
        refusal = request.refusal(self._wire, address, row[1])
        if refusal is not None:
            raise refusal
        answer: tuple[str, bytes] = request.value(address, memoryview(frame)[row[5] : row[5] + row[6]])
        return answer
