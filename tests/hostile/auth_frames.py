"""AUTH frames of a client that is not authenticated yet, encoded by hand in either protocol, and the responses."""

import itertools
import struct
from typing import NamedTuple

from bookie.auth.provider import ClientSession
from bookie.pb import wire_pb2 as wire
from tests.hostile.peer import Peer

EOK, EUA = wire.EOK, wire.EUA
_transactions = itertools.count(1)


class Said(NamedTuple):
    """A response to AUTH: V3's status (0 in V2), plugin and payload; plugin is None if there is no message."""

    status: int
    plugin: str | None
    payload: bytes


def framed(body: bytes) -> bytes:
    """Return the body with its length."""
    return struct.pack(">i", len(body)) + body


def v2_auth(body: bytes, version: int = 2) -> bytes:
    """Return a frame with arbitrary bytes in place of the AuthMessage."""
    return framed((struct.pack(">BBH", version, 3, 0) if version else struct.pack(">i", 3)) + body)


def auth(protocol: int, plugin: str, payload: bytes, *, priority: int = 0) -> bytes:
    """Return an AUTH frame."""
    message = wire.AuthMessage(authPluginName=plugin, payload=payload)
    if protocol == 2:
        return v2_auth(message.SerializeToString())
    header = wire.BKPacketHeader(
        version=wire.VERSION_THREE, operation=wire.AUTH, txnId=next(_transactions), priority=priority
    )
    return framed(wire.Request(header=header, authRequest=message).SerializeToString())


def receive(peer: Peer) -> bytes:
    """Return the body of the next frame."""
    (size,) = struct.unpack(">i", peer.take(4))
    return peer.take(size)


def said(protocol: int, body: bytes) -> Said:
    """Parse a response to AUTH."""
    if protocol == 2:
        assert body[:4] == b"\x02\x03\0\0"
        message = wire.AuthMessage.FromString(body[4:])
        return Said(EOK, message.authPluginName, message.payload)
    response = wire.Response.FromString(body)
    assert response.header.operation == wire.AUTH
    message = response.authResponse
    plugin = message.authPluginName if response.HasField("authResponse") else None
    return Said(response.status, plugin, message.payload)


def ask(peer: Peer, protocol: int, plugin: str, payload: bytes) -> Said:
    """Send one AUTH and return its response. Raises EOFError if the bookie closes the connection."""
    peer.sock.sendall(auth(protocol, plugin, payload))
    return said(protocol, receive(peer))


def log_in(peer: Peer, protocol: int, plugin: str, client: ClientSession) -> None:
    """Run a client's complete login."""
    token = client.first()
    while token is not None:
        answer = ask(peer, protocol, plugin, token)
        assert answer.status == EOK
        assert answer.plugin == plugin
        token = client.answer(answer.payload)
    assert client.done
