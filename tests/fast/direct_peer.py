"""A direct connection and the other end of its socket, which a test plays."""

import contextlib
import itertools
import socket
import threading
from collections.abc import Iterator

import pytest

from bookie._fast.client.direct_link import DirectLink
from bookie.client import Digest
from bookie.pb import wire_pb2 as pb
from tests.client.v3_peer import batch_read, entry_read
from tests.reference import record
from tests.reference import wire_v2 as v2

DIGEST = Digest.of(password=b"secret")
FRAME_BYTES_MAX = 1 << 20
SOON_S, LONG_S = 0.05, 30.0


def sealed(entry: int, payload: bytes | None = None, ledger: int = 7) -> bytes:
    """Return an entry as it is stored."""
    return DIGEST.seal(ledger, entry, b"entry %d" % entry if payload is None else payload, lac=entry - 1, length=0)


class Peer:
    """A direct connection, and the bookie's end of it."""

    def __init__(self, *, v3: bool = False, patience_s: float = LONG_S) -> None:
        ours, self.sock = socket.socketpair()
        self.v3 = v3
        self.sent: bytearray | None = None
        self.link = DirectLink(ours, FRAME_BYTES_MAX, patience_s, v3=v3)

    def close(self) -> None:
        """Close both ends."""
        self.link.close()
        self.sock.close()

    def send(self, data: bytes) -> None:
        """Send bytes beforehand, or from a thread of its own if there are many; or keep them in `sent`."""
        if self.sent is not None:
            self.sent += data
        elif len(data) < 1 << 16:
            self.sock.sendall(data)
        else:
            threading.Thread(target=self.sock.sendall, args=(data,), daemon=True).start()

    def respond(self, request: pb.Request, response: pb.Response) -> None:
        """Send a V3 response."""
        del request
        self.send(v2.framed(response.SerializeToString()))

    def read_of(self, entry: int, number: int = 1) -> pb.Request:
        """Return the header of a V3 request, as far as responses repeat it."""
        header = pb.BKPacketHeader(version=pb.VERSION_THREE, operation=pb.READ_ENTRY, txnId=number)
        return pb.Request(header=header, readRequest=pb.ReadRequest(ledgerId=7, entryId=entry))

    def batch_of(self, start: int, number: int = 1) -> pb.Request:
        """Do the same for a batch read."""
        header = pb.BKPacketHeader(version=pb.VERSION_THREE, operation=pb.BATCH_READ_ENTRY, txnId=number)
        part = pb.BatchReadRequest(ledgerId=7, startEntryId=start, maxCount=0, maxSize=0)
        return pb.Request(header=header, batchReadRequest=part)

    def send_entry(self, entry: int, stored: bytes, number: int = 1) -> None:
        """Send the response to a single read."""
        if self.v3:
            asked = self.read_of(entry, number)
            self.respond(asked, entry_read(asked, stored, entry))
        else:
            self.send(v2.encode_response(v2.Response(v2.READ, 0, 7, entry, body=stored)))

    def send_batch(self, start: int, entries: list[bytes], number: int = 1) -> None:
        """Send the response to a batch read."""
        if self.v3:
            asked = self.batch_of(start, number)
            self.respond(asked, batch_read(asked, entries))
        else:
            self.send(v2.encode_response(v2.Response(v2.BATCH_READ, 0, 7, start, number, record.pack(entries))))

    def read(self, entry: int) -> bytes | None:
        """Read an entry of ledger 7, and return it as stored."""
        got = self.link.read(7, entry, DIGEST.digester, LONG_S)
        if got is None:
            return None
        run, offsets, _ = got
        assert offsets.tolist() == [0, len(run)]
        assert int.from_bytes(run[:4], "big") == len(run) - 4
        return bytes(run[4:])

    def batch(self, start: int, count: int = 100) -> list[bytes] | None:
        """Read a batch of ledger 7, and return its entries as stored."""
        got = self.link.batch_read(7, start, count, FRAME_BYTES_MAX, DIGEST.digester, LONG_S)
        if got is None:
            return None
        first, run, offsets, _ = got
        assert first == start
        assert offsets[0] == 0
        return [bytes(run[a + 4 : b]) for a, b in itertools.pairwise(offsets)]


@pytest.fixture(params=[2, 3])
def peer(request: pytest.FixtureRequest) -> Iterator[Peer]:
    """A connection in each protocol."""
    with connected(v3=request.param == 3) as peer:
        yield peer


@contextlib.contextmanager
def connected(*, v3: bool = False, patience_s: float = LONG_S) -> Iterator[Peer]:
    """A connection that is closed at the end."""
    with contextlib.closing(Peer(v3=v3, patience_s=patience_s)) as peer:
        yield peer
