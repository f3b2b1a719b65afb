"""AUTH by hand, in either protocol: frames of a client that is not authenticated yet, and what comes back."""

import itertools
import struct
from typing import NamedTuple

from bookie.auth.provider import ClientSession
from bookie.pb import wire_pb2 as wire
from tests.hostile.peer import Peer

EOK, EUA = wire.EOK, wire.EUA
_transactions = itertools.count(1)


class Said(NamedTuple):
    """An answer to AUTH: V3's status (0 in V2), plugin and payload; plugin is None where there is no message."""

    status: int
    plugin: str | None
    payload: bytes


def framed(body: bytes) -> bytes:
    """With its length."""
    return struct.pack(">i", len(body)) + body


def v2_auth(body: bytes, version: int = 2) -> bytes:
    """A frame with any bytes where the AuthMessage should be."""
    return framed((struct.pack(">BBH", version, 3, 0) if version else struct.pack(">i", 3)) + body)


def auth(protocol: int, plugin: str, payload: bytes, *, priority: int = 0) -> bytes:
    """An AUTH frame."""
    message = wire.AuthMessage(authPluginName=plugin, payload=payload)
    if protocol == 2:
        return v2_auth(message.SerializeToString())
    header = wire.BKPacketHeader(
        version=wire.VERSION_THREE, operation=wire.AUTH, txnId=next(_transactions), priority=priority
    )
    return framed(wire.Request(header=header, authRequest=message).SerializeToString())


def receive(peer: Peer) -> bytes:
    """The body of the next frame."""
    (size,) = struct.unpack(">i", peer.take(4))
    return peer.take(size)


def said(protocol: int, body: bytes) -> Said:
    """What an answer to AUTH says."""
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
    """One AUTH and its answer. EOFError: the bookie hung up."""
    peer.sock.sendall(auth(protocol, plugin, payload))
    return said(protocol, receive(peer))


def log_in(peer: Peer, protocol: int, plugin: str, client: ClientSession) -> None:
    """The whole conversation of a client."""
    token = client.first()
    while token is not None:
        answer = ask(peer, protocol, plugin, token)
        assert answer.status == EOK
        assert answer.plugin == plugin
        token = client.answer(answer.payload)
    assert client.done
