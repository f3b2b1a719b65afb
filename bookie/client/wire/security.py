"""How a connection is encrypted and authenticated before it is used: the interfaces for TLS and for providers.

It runs on the connecting thread, before any other thread knows the connection.
"""

import socket
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Protocol

from typing_extensions import Buffer

from bookie.auth.provider import ClientProvider
from bookie.client.wire.messages import framed, parsed
from bookie.errors import BookieUnavailable, SecurityError, UnauthorizedAccess, error_from_v3
from bookie.pb import wire_pb2 as pb

AUTH_DISABLED = "AuthDisabledPlugin"
"""The plugin name in the response of a bookie that does not require authentication."""
FRAME_PREFIX = 4
ANSWER_BYTES_MAX = 1 << 10


class Transport(Protocol):
    """What a channel sends and receives through: a socket, or an encrypted connection on top of one.

    One thread receives while others send. Calls raise BlockingIOError when the socket's time limit has passed.
    """

    def sendall(self, data: Buffer, /) -> None: ...
    def recv_into(self, buffer: Buffer, /) -> int: ...
    def shutdown(self, how: int, /) -> None: ...
    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Security:
    """How channels are encrypted and authenticated.

    Attributes:
        encrypt: Makes an encrypted link of a socket whose peer expects a ClientHello, and of the host name that the
            peer's certificate must have; raises SecurityError. `Tls` is one. None means no encryption.
        auth: The provider that authenticates the client; None means no authentication.
    """

    encrypt: Callable[[socket.socket, str], Transport] | None = None
    auth: ClientProvider | None = None

    def secure(self, sock: socket.socket, host: str, address: str) -> Transport:
        """Encrypt the connection if that is configured.

        Args:
            sock: The connected socket.
            host: The host name that the certificate must have.
            address: The address of the bookie, for error texts.

        Returns:
            The link to use from now on.

        Raises:
            SecurityError: The bookie does not support TLS, or the handshake failed.
            BookieUnavailable: The connection was lost.
        """
        if self.encrypt is None:
            return sock
        start_tls(sock, address)
        return self.encrypt(sock, host)


def start_tls(sock: socket.socket, address: str) -> None:
    """Ask for encryption, in V3 whatever protocol is used later. Raises SecurityError if the bookie does not support
    TLS.
    """
    try:
        sock.sendall(start_tls_request())
        size = start_tls_size(_exactly(sock, FRAME_PREFIX), address)
        start_tls_granted(_exactly(sock, size), address)
    except OSError as error:
        raise BookieUnavailable(f"{address}: connection lost at START_TLS ({error}); does it speak V3?") from error


def start_tls_request() -> bytes:
    """Return the frame of the request START_TLS."""
    header = pb.BKPacketHeader(version=pb.VERSION_THREE, operation=pb.START_TLS, txnId=0)
    return framed(pb.Request(header=header, startTLSRequest=pb.StartTLSRequest()))


def start_tls_size(prefix: bytes, address: str) -> int:
    """Return the size of the response that follows its length prefix. Raises SecurityError if the size is too large."""
    size = int.from_bytes(prefix, "big")
    if size > ANSWER_BYTES_MAX:
        raise SecurityError(f"{address}: answered START_TLS with {size} bytes; it speaks another protocol")
    return size


def start_tls_granted(body: bytes, address: str) -> None:
    """Check that the bookie now expects a ClientHello. Raises SecurityError if it refused."""
    try:
        answer = parsed(pb.Response, body)
    except ValueError as error:
        raise SecurityError(f"{address}: malformed answer to START_TLS: {error}") from error
    refused = error_from_v3(answer.status, SecurityError)
    if refused is not None:
        raise refused(f"{address}: START_TLS answered with status {answer.status}; is TLS configured there?")


def authenticate(
    provider: ClientProvider, host: str, address: str, exchange: Callable[[str, bytes], tuple[str, bytes]]
) -> None:
    """Exchange tokens until both sides are satisfied, or the bookie requires no authentication. Raises
    UnauthorizedAccess.
    """
    talk = conversation(provider, host, address)
    token = next(talk, None)
    while token is not None:
        try:
            token = talk.send(exchange(provider.plugin_name, token))
        except StopIteration:
            return


def conversation(provider: ClientProvider, host: str, address: str) -> Generator[bytes, tuple[str, bytes], None]:
    """Yield the tokens to send, and take the plugin name and token of each response. Raises UnauthorizedAccess."""
    session = provider.session(host)
    token = session.first()
    while token is not None:
        plugin, answer = yield token
        if plugin == AUTH_DISABLED:
            return
        if plugin != provider.plugin_name:
            raise UnauthorizedAccess(f"{address}: authenticates by {plugin!r}, not by {provider.plugin_name!r}")
        token = session.answer(answer)
    if not session.done:
        raise UnauthorizedAccess(f"{address}: {provider.plugin_name} ended before the provider had accepted the bookie")


def _exactly(sock: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        part = sock.recv(size - len(data))
        if not part:
            raise ConnectionResetError("the bookie closed it")
        data += part
    return bytes(data)
