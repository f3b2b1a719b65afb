"""Connecting with encryption and authentication to a scripted peer: the order of messages, and the result."""

import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from bookie.auth.token import TokenClient
from bookie.client import Channel, ChannelV3, Security
from bookie.errors import BookieUnavailable, SecurityError, UnauthorizedAccess
from bookie.pb import wire_pb2 as pb
from tests.client.v3_peer import V3Peer, entry_read, ok, refused
from tests.golden.wire_v2 import E0
from tests.reference import wire_v2 as v2

TOKEN = b"correct horse battery staple"
BY_TOKEN = Security(auth=TokenClient(TOKEN))


@pytest.fixture
def peer() -> Iterator[V3Peer]:
    """The bookie's end of the connection, played by the test."""
    with V3Peer() as peer:
        yield peer


def connecting(
    peer: V3Peer, kind: type[Channel] | type[ChannelV3], security: Security, play: Callable[[], None]
) -> Any:
    """Connect while `play` acts as the bookie, and return the channel."""
    with ThreadPoolExecutor(1) as threads:
        channel = threads.submit(kind.connect, "127.0.0.1", peer.port, security=security)
        play()
        return channel.result(timeout=10)


def granted(request: pb.Request, plugin: str = "token") -> pb.Response:
    """Return the response to an AUTH that succeeds."""
    return ok(request, authResponse=pb.AuthMessage(authPluginName=plugin, payload=b""))


def test_authentication_comes_first(peer: V3Peer) -> None:
    """In V3 the token is the first message to the bookie; then the channel works."""

    def play() -> None:
        asked = peer.ask()
        assert asked.authRequest == pb.AuthMessage(authPluginName="token", payload=TOKEN)
        peer.respond(granted(asked))

    with connecting(peer, ChannelV3, BY_TOKEN, play) as channel:
        read = channel.read_async(7, 0)
        peer.respond(entry_read(peer.ask(), E0))
        assert read.result() == E0


def test_authentication_in_v2(peer: V3Peer) -> None:
    """In V2 the same message is sent in V2's frame."""
    message = pb.AuthMessage(authPluginName="token", payload=TOKEN)

    def play() -> None:
        request = peer.request()
        assert (request.op, request.body) == (v2.AUTH, message.SerializeToString())
        message.payload = b""
        peer.answer(v2.Response(v2.AUTH, body=message.SerializeToString()))

    with connecting(peer, Channel, BY_TOKEN, play) as channel:
        read = channel.read_async(7, 0)
        peer.request()
        peer.answer(v2.Response(v2.READ, 0, 7, 0, body=E0))
        assert read.result() == E0


def test_a_bookie_that_lets_everybody_in(peer: V3Peer) -> None:
    """A bookie that requires no authentication answers with the plugin name that means so."""
    connecting(peer, ChannelV3, BY_TOKEN, lambda: peer.respond(granted(peer.ask(), "AuthDisabledPlugin"))).close()


@pytest.mark.parametrize(
    ("answer", "text"),
    [(lambda request: refused(request, pb.EUA), "code 502"), (lambda request: granted(request, "sasl"), "by 'sasl'")],
)
def test_not_let_in(peer: V3Peer, answer: Callable[[pb.Request], pb.Response], text: str) -> None:
    """A refusal, or another plugin, raises an error without the token in it, and there is no channel."""
    with pytest.raises(UnauthorizedAccess, match=text) as error:
        connecting(peer, ChannelV3, BY_TOKEN, lambda: peer.respond(answer(peer.ask())))
    assert TOKEN.decode() not in str(error.value)


class Link:
    """A link that encrypts nothing, and records the host that it was made for."""

    made: str = ""

    def __init__(self, sock: socket.socket, host: str) -> None:
        Link.made = host
        self.sendall, self.recv_into = sock.sendall, sock.recv_into
        self.shutdown, self.close = sock.shutdown, sock.close


@pytest.mark.parametrize("kind", [Channel, ChannelV3])
def test_encryption_comes_before_everything(peer: V3Peer, kind: type[Channel] | type[ChannelV3]) -> None:
    """START_TLS is sent in clear, in V3 for both protocols; the link is made after the bookie has agreed."""

    def play() -> None:
        asked = peer.ask()
        assert (asked.header.operation, asked.HasField("startTLSRequest")) == (pb.START_TLS, True)
        peer.respond(ok(asked, startTLSResponse=pb.StartTLSResponse()), piece=1)

    connecting(peer, kind, Security(encrypt=Link), play).close()
    assert Link.made == "127.0.0.1"


def test_a_bookie_without_tls(peer: V3Peer) -> None:
    """If the bookie refuses, nothing else is sent in clear."""
    with pytest.raises(SecurityError, match="is TLS configured there"):
        connecting(peer, Channel, Security(encrypt=Link), lambda: peer.respond(refused(peer.ask(), pb.EBADREQ)))


def test_a_peer_that_hangs_up_at_start_tls(peer: V3Peer) -> None:
    """The loss of the connection is reported as such."""

    def play() -> None:
        peer.ask()
        peer.hang_up()

    with pytest.raises(BookieUnavailable, match="connection lost at START_TLS"):
        connecting(peer, Channel, Security(encrypt=Link), play)


def test_nonsense_at_start_tls(peer: V3Peer) -> None:
    """A peer of another protocol is refused after a few bytes."""
    with pytest.raises(SecurityError, match="speaks another protocol"):
        connecting(peer, Channel, Security(encrypt=Link), lambda: peer.send(b"HTTP/1.1 400 Bad Request\r\n"))
