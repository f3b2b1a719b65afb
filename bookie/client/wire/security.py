"""How a channel is encrypted and authenticated before it is used: the seams for TLS and for providers.

Runs on the connecting thread, before anybody else knows the channel.
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
"""The plugin name that a bookie answers which lets everybody in."""
FRAME_PREFIX = 4
ANSWER_BYTES_MAX = 1 << 10


class Link(Protocol):
    """What a channel sends and receives through: a socket, or something encrypted on top of one.

    One thread receives while others send. BlockingIOError when the socket's time limit has passed.
    """

    def sendall(self, data: Buffer, /) -> None: ...
    def recv_into(self, buffer: Buffer, /) -> int: ...
    def shutdown(self, how: int, /) -> None: ...
    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Security:
    """`encrypt` makes a link of a socket whose peer expects a ClientHello, and of the host that its certificate must
    name; raises SecurityError. None: plain. `auth`: who we are; None: nobody in particular."""

    encrypt: Callable[[socket.socket, str], Link] | None = None
    auth: ClientProvider | None = None

    def secure(self, sock: socket.socket, host: str, address: str) -> Link:
        """Upgrade the connection if that is wanted. SecurityError, BookieUnavailable."""
        if self.encrypt is None:
            return sock
        start_tls(sock, address)
        return self.encrypt(sock, host)


def start_tls(sock: socket.socket, address: str) -> None:
    """Ask for encryption in clear text, in V3 whatever is spoken later. SecurityError when the bookie has no TLS."""
    try:
        sock.sendall(start_tls_request())
        size = start_tls_size(_exactly(sock, FRAME_PREFIX), address)
        start_tls_granted(_exactly(sock, size), address)
    except OSError as error:
        raise BookieUnavailable(f"{address}: connection lost at START_TLS ({error}); does it speak V3?") from error


def start_tls_request() -> bytes:
    """The frame that asks for encryption."""
    header = pb.BKPacketHeader(version=pb.VERSION_THREE, operation=pb.START_TLS, txnId=0)
    return framed(pb.Request(header=header, startTLSRequest=pb.StartTLSRequest()))


def start_tls_size(prefix: bytes, address: str) -> int:
    """Bytes of the answer behind its length word. SecurityError when it cannot be one."""
    size = int.from_bytes(prefix, "big")
    if size > ANSWER_BYTES_MAX:
        raise SecurityError(f"{address}: answered START_TLS with {size} bytes; it speaks another protocol")
    return size


def start_tls_granted(body: bytes, address: str) -> None:
    """Return if the bookie expects a ClientHello now. SecurityError."""
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
    """Tokens to and fro until both sides are satisfied, or the bookie lets everybody in. UnauthorizedAccess."""
    talk = conversation(provider, host, address)
    token = next(talk, None)
    while token is not None:
        try:
            token = talk.send(exchange(provider.plugin_name, token))
        except StopIteration:
            return


def conversation(provider: ClientProvider, host: str, address: str) -> Generator[bytes, tuple[str, bytes], None]:
    """Yields what to send; is sent the plugin name and token of each answer. UnauthorizedAccess."""
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
        raise UnauthorizedAccess(f"{address}: {provider.plugin_name} ended before it was satisfied")


def _exactly(sock: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        part = sock.recv(size - len(data))
        if not part:
            raise ConnectionResetError("the bookie closed it")
        data += part
    return bytes(data)
