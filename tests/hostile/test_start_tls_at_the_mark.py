"""A connection that ends while START_TLS is the frame that raises its output above the mark (modules intake,
upgrade).

Its further input is held until its peer reads. If that peer is gone by then, the response to START_TLS closes the
connection, and frees its held input, while it is being served: nothing may use that input afterwards. The address
sanitizer (`make test-asan`) would report it.
"""

import socket
from collections.abc import Callable
from pathlib import Path

from bookie.pb import wire_pb2 as wire
from tests.fixtures.bookies import BookieProcess
from tests.fixtures.certificates import Authority
from tests.fixtures.frozen import freeze, thaw
from tests.hostile.auth_frames import framed
from tests.hostile.peer import Peer, add
from tests.hostile.tls_peer import START_TLS
from tests.hostile.v3_frames import request
from tests.interop.guards import bookie_keys

READS = 4
ANSWER_BYTES = 1000


def queued(ours: int, theirs: int) -> int:
    """Return the bytes that the kernel still holds of a loopback connection, in both directions."""
    total = 0
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        ports = {int(field.rsplit(":", 1)[1], 16) for field in fields[1:3]}
        if ports == {ours, theirs}:
            total += sum(int(part, 16) for part in fields[4].split(":"))
    return total


def drain(peer: Peer) -> None:
    """Read everything that the bookie's kernel has, while the bookie itself is stopped."""
    port, theirs = peer.sock.getsockname()[1], peer.sock.getpeername()[1]
    peer.sock.setblocking(False)
    while queued(port, theirs):
        try:
            peer.sock.recv(1 << 20)
        except BlockingIOError:
            continue


def test_the_peer_is_gone(bookies: Callable[..., list[BookieProcess]], tmp_path: Path) -> None:
    """Every size of pending output is tried, including one that the kernel takes completely when the peer is gone."""
    read = framed(request(wire.READ_ENTRY).SerializeToString())
    (bookie,) = bookies(1, **bookie_keys(Authority(tmp_path), client_auth=False))
    with Peer(bookie.address) as peer:
        assert peer.ask(add(1, 0, b"x" * ANSWER_BYTES)).code == 0
    with Peer(bookie.address) as peer:
        peer.sock.sendall(read)
        answer = 4 + int.from_bytes(peer.take(4))
    bookie.settings |= {"serverWriteBufferLowWaterMark": "1", "serverWriteBufferHighWaterMark": str(READS * answer + 8)}
    bookie.restart()
    with Peer(bookie.address) as peer:
        for entry in range(129):
            assert peer.ask(add(1, entry, b"x" * (1 << 15 if entry else ANSWER_BYTES))).code == 0
    for size in (1 << bits for bits in range(16, 23)):
        range_ = wire.BatchReadRequest(ledgerId=1, startEntryId=1, maxCount=128, maxSize=size)
        first = framed(request(wire.BATCH_READ_ENTRY, batchReadRequest=range_).SerializeToString())
        with Peer(bookie.address) as peer:  # repeated reads are in memory, so no read is pending at START_TLS
            peer.sock.sendall(first)
            peer.take(int.from_bytes(peer.take(4)))
        with Peer(bookie.address) as peer:
            peer.sock.sendall(first + READS * read + START_TLS + b"\0")
            peer.sock.recv(1, socket.MSG_PEEK)
            freeze(bookie.pid)
            try:
                drain(peer)
            finally:
                peer.close()
                thaw(bookie.pid)
    with Peer(bookie.address) as peer:
        assert peer.ask(add(2, 0)).code == 0
