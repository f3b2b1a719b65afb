"""A window with direct adds, and the bookies' ends of its connections, for the tests of module client.direct_adds."""

import contextlib
import socket
import struct
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from bookie._fast.client.direct_adds import DirectAdder
from bookie._fast.client.direct_link import LATE, LOST, MALFORMED, REFUSED, DirectLink
from bookie._fast.client.write_window import Add, WriteWindow
from bookie.client.entries.digest import Digest, DigestType
from bookie.pb import wire_pb2 as pb
from tests.fast.direct_peer import LONG_S, Peer
from tests.reference import wire_v2 as v2

DIGEST = Digest.of(DigestType.CRC32C, b"")
FOREVER_S = 1e12
PREFIX = struct.Struct(">I")


class Ended(Exception):
    """The exception that the tests' windows raise for a failed add."""


class Pool:
    """What gets connections back."""

    def __init__(self) -> None:
        self.given: list[DirectLink] = []

    def give(self, link: DirectLink) -> None:
        """Take a connection back."""
        self.given.append(link)


class Direct:
    """A window, its direct adds, and the bookies' ends of the connections to all of its ensemble.

    `enough` is the ack quorum; 0 means all copies.
    """

    def __init__(
        self, copies: int = 1, enough: int = 0, *, v3: bool = False, patience_s: float = LONG_S, **options: Any
    ) -> None:
        self.v3 = v3
        explain = lambda entry, error: Ended(f"{entry}: {error}")  # noqa: E731
        self.window = WriteWindow(DIGEST.digester, 7, (copies, copies, enough or copies), explain, **options)
        self.taken_over = 0
        self.waiting: list[object] = []
        self.adder = DirectAdder(self.window, DIGEST.master_key, self.take_over, self.waiting)
        self.peers = [Peer(v3=v3, patience_s=patience_s) for _ in range(copies)]
        self.pools = [Pool() for _ in range(copies)]

    def take_over(self) -> None:
        """Count the calls for the event loop."""
        self.taken_over += 1

    def close(self) -> None:
        """Close all connections."""
        for peer in self.peers:
            peer.close()

    def add(self, payload: bytes = b"payload", timeout_s: float = LONG_S) -> int | Add | None:
        """Add the next entry."""
        self.links: list[DirectLink | None] = [peer.link for peer in self.peers]
        entry, changes = self.window.next, self.window.changes
        return self.adder.add(payload, entry, changes, 0.0, self.links, self.pools, FOREVER_S, timeout_s)

    def answer(self, peer: Peer, entry: int, code: int = 0, number: int | None = None) -> None:
        """Send a response to an add, beforehand. In V3 it is the `number`th request on all connections."""
        if self.v3:
            header = pb.BKPacketHeader(version=pb.VERSION_THREE, operation=pb.ADD_ENTRY, txnId=number or entry + 1)
            status = pb.EOK if code == 0 else pb.EFENCED
            part = pb.AddResponse(status=status, ledgerId=7, entryId=entry)
            peer.send(v2.framed(pb.Response(header=header, status=status, addResponse=part).SerializeToString()))
        else:
            peer.send(v2.encode_response(v2.Response(v2.ADD, code, 7, entry)))

    def sent(self, peer: Peer) -> bytes:
        """Return the entry in the next request that a bookie got."""
        size = PREFIX.unpack(peer.sock.recv(4, socket.MSG_WAITALL))[0]
        body = peer.sock.recv(size, socket.MSG_WAITALL)
        if not self.v3:
            code, request = v2.decode_request(body)
            assert request is not None
            assert (code, request.key) == (0, DIGEST.master_key)
            return bytes(request.body or b"")
        request_v3 = pb.Request.FromString(body)
        assert request_v3.addRequest.masterKey == DIGEST.master_key
        return request_v3.addRequest.body

    def by_loop(self) -> list[int]:
        """Send what the event loop has to send, have all bookies store it, and return the ids."""
        window, ids = self.window, list[int]()
        while count := window.take(1.0):
            for index in range(len(self.peers)):
                records = window.batch(index)
                assert records is not None
                window.answered(index, records[2], np.zeros(count, dtype=np.int32))
                ids += records[2].tolist() if index == 0 else []
        window.release()
        return ids


@contextlib.contextmanager
def direct(*given: Any, **options: Any) -> Iterator[Direct]:
    """Yield a window with connections that are closed at the end."""
    with contextlib.closing(Direct(*given, **options)) as one:
        yield one


def hang_up(one: Direct) -> None:
    """Close the connection."""
    one.peers[-1].sock.close()


FAILURES: dict[str, tuple[Callable[[Direct], None], int]] = {
    "refused": (lambda one: one.answer(one.peers[-1], 0, 104), REFUSED),
    "silent": (lambda _: None, LATE),
    "lost": (hang_up, LOST),
    "another entry": (lambda one: one.answer(one.peers[-1], 1, number=9), MALFORMED),
    "no response": (lambda one: one.peers[-1].send(b"\0\0\0\1x"), MALFORMED),
}
