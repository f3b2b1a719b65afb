"""The attacks: what each of them does, and which limit of the bookie bounds it."""

import struct
from dataclasses import dataclass

from bookie.pb import wire_pb2 as wire
from perf.attacks.crowd import Manners
from tests.hostile import v3
from tests.hostile.auth_frames import auth
from tests.hostile.peer import batch, read
from tests.hostile.tls_peer import START_TLS
from tests.reference.wire_v2 import encode_request

__all__ = ["Attack", "attacks", "ENTRIES", "LEDGER", "TOKEN"]

LEDGER, ENTRIES = 1, 1000
"""The ledger that honest clients and attackers read."""
TOKEN = b"a-token-of-the-attacked-bookie"
ADDRESSES = 16


@dataclass(frozen=True, slots=True)
class Attack:
    """An attack, which is a row of the table."""

    name: str
    bound: str
    manners: Manners


def framed(*requests: wire.Request) -> bytes:
    """Return V3 requests as frames."""
    bodies = [message.SerializePartialToString() for message in requests]
    return b"".join(struct.pack(">i", len(body)) + body for body in bodies)


def http(path: str, body_bytes: int = 0) -> bytes:
    """Return an HTTP request; its body, if any, is never sent."""
    method = "POST" if body_bytes else "GET"
    length = f"Content-Length: {body_bytes}\r\n" if body_bytes else ""
    return f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{length}\r\n".encode()


def attacks() -> list[Attack]:
    """Return all attacks; those without a login first."""
    login = auth(2, "token", TOKEN)
    login3 = auth(3, "token", TOKEN)
    reads = b"".join(encode_request(read(LEDGER, entry % ENTRIES)) for entry in range(4000))
    batches = b"".join(encode_request(batch(LEDGER, 0, size=1 << 20)) for _ in range(16))
    info = framed(*(v3.request(wire.GET_BOOKIE_INFO, {"requested": 3}) for _ in range(1000)))
    urgent = framed(*(_urgent(entry % ENTRIES) for entry in range(2000)))
    by_login = "`serverAuthenticationTimeoutMs`"
    return [
        Attack("2,000 silent connections, data port", by_login, Manners(door="data", count=2000, addresses=ADDRESSES)),
        Attack("1,200 silent connections, HTTP", "`httpServerMaxConnections`; the oldest is closed first",
               Manners(door="http", count=1200, addresses=ADDRESSES)),
        Attack("1,200 silent connections, gRPC", "`adminMaxConnections`; the oldest is closed first",
               Manners(door="grpc", count=1200, addresses=ADDRESSES)),
        Attack("300 POST /heartbeat without a body", "probes read no body",
               Manners(door="http", count=300, words=http("/heartbeat", 1000), addresses=ADDRESSES)),
        Attack("300 HTTP requests that never finish their headers", "`httpServerReceiveTimeoutMs`",
               Manners(door="http", count=300, words=b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ",
                       addresses=ADDRESSES)),
        Attack("200 frames of 5 MB before a login", "closed at the length word",
               Manners(door="data", count=200, words=struct.pack(">i", 5_000_000) + bytes(60_000),
                       addresses=ADDRESSES)),
        Attack("100 repeated logins with an unknown plugin", "three tries",
               Manners(door="data", count=100, words=auth(3, "no-such-plugin", b"x"),
                       then=auth(3, "no-such-plugin", b"x") * 8, addresses=ADDRESSES)),
        Attack("500 handshakes that stop after START_TLS", "`tlsHandshakesMaxPerAddress`, `tlsHandshakeTimeoutMs`",
               Manners(door="data", count=500, words=START_TLS)),
        Attack("100 connections that send noise", "closed at the first frame",
               Manners(door="data", count=100, words=bytes(range(1, 256)) * 64, addresses=ADDRESSES)),
        Attack("5,000 connections a second", "16 are accepted per round",
               Manners(door="data", count=1, comes_s=5000, addresses=ADDRESSES)),
        Attack("5,000 connections a second, HTTP", "the oldest idle connection is closed first",
               Manners(door="http", count=1, comes_s=5000, addresses=ADDRESSES)),
        Attack("5,000 connections a second, gRPC", "the oldest idle connection is closed first",
               Manners(door="grpc", count=1, comes_s=5000, addresses=ADDRESSES)),
        Attack("8 users request bookie info continuously", "a sixteenth of `maxPendingPolicyRequests` each",
               Manners(door="data", count=8, words=login3, then=info)),
        Attack("8 users pipeline reads continuously", "turns of 64 KiB; connections that were idle go first",
               Manners(door="data", count=8, words=login, then=reads)),
        Attack("64 users pipeline reads continuously", "the same",
               Manners(door="data", count=64, words=login, then=reads)),
        Attack("8 users pipeline reads of high priority", "the same; high priority needs the right to write",
               Manners(door="data", count=8, words=login3, then=urgent)),
        Attack("8 users pipeline batches of 1 MiB", "turns of 64 KiB; connections that were idle go first",
               Manners(door="data", count=8, words=login, then=batches)),
        Attack("200 users that request batches and read no answer",
               "a quarter of `serverMaxOutputMemorySizeMb`, shared",
               Manners(door="data", count=200, words=login, then=batches, reads=False, receive_bytes=4096)),
        Attack("4 users that read batches at 10 MB/s in segments of 1,400", "the same; never closed",
               Manners(door="data", count=4, words=login, then=batches, bytes_s=40_000_000, segment_bytes=1400,
                       receive_bytes=65_536)),
    ]  # fmt: skip


def _urgent(entry: int) -> wire.Request:
    message = v3.read3(LEDGER, entry)
    message.header.priority = 100
    return message
