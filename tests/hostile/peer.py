"""A bare client: it sends frames as they are given, and returns responses as they arrive.

One thread at a time; the test owns the socket.
"""

import contextlib
import socket
import struct
from typing import Self

from tests.reference.wire_v2 import ADD, BATCH_READ, READ, Request, Response, decode_response, encode_request

TIMEOUT_S = 60.0
KEY = bytes(range(20))


def entry_of(ledger: int, entry: int, payload: bytes = b"", *, lac: int = -1) -> bytes:
    """Return an entry as stored: ids, LAC, length, payload. Bookies do not verify digests."""
    return struct.pack(">qqqq", ledger, entry, lac, len(payload)) + payload


def add(
    ledger: int, entry: int, payload: bytes = b"", *, key: bytes = KEY, flags: int = 0, version: int = 2
) -> Request:
    """Return an add of `entry_of`."""
    return Request(ADD, version, flags, key=key, body=entry_of(ledger, entry, payload))


def read(ledger: int, entry: int, *, flags: int = 0, key: bytes | None = None, version: int = 2) -> Request:
    """Return a read; with flag 1 and a key, a fencing one."""
    return Request(READ, version, flags, ledger, entry, key=key)


def batch(
    ledger: int,
    start: int,
    *,
    count: int = 0,
    size: int = 1 << 20,
    request_id: int = 1,
    flags: int = 0,
    key: bytes | None = None,
    version: int = 2,
) -> Request:
    """Return a batch read."""
    return Request(BATCH_READ, version, flags, ledger, start, request_id, count, size, key=key)


def records(body: bytes) -> list[bytes]:
    """Return the entries of a batch response."""
    found, at = [], 0
    while at < len(body):
        (size,) = struct.unpack_from(">i", body, at)
        assert 0 < size <= len(body) - at - 4
        found.append(body[at + 4 : at + 4 + size])
        at += 4 + size
    return found


class Peer:
    """One connection; a context manager. `receive_bytes` bounds the kernel's buffer of unread bytes, `segment_bytes`
    the packets of the bookie's kernel, and `source` is the local address.
    """

    def __init__(
        self, address: tuple[str, int], *, receive_bytes: int = 0, segment_bytes: int = 0, source: str = ""
    ) -> None:
        self.sock = socket.socket()
        if source:
            self.sock.bind((source, 0))
        if segment_bytes:
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, segment_bytes)
        if receive_bytes:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        self.sock.settimeout(TIMEOUT_S)
        self.sock.connect(address)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection. Idempotent."""
        self.sock.close()

    def abort(self) -> None:
        """Close the connection with a reset."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def send(self, *requests: Request) -> None:
        """Send complete frames in one write."""
        self.sock.sendall(b"".join(map(encode_request, requests)))

    def take(self, size: int) -> bytes:
        """Return exactly `size` bytes. Raises EOFError if the connection ends before."""
        parts = bytearray()
        while len(parts) < size:
            piece = self.sock.recv(min(size - len(parts), 1 << 20))
            if not piece:
                raise EOFError
            parts += piece
        return bytes(parts)

    def take_all(self) -> bytes:
        """Return everything until the bookie closes the connection."""
        parts = bytearray()
        with contextlib.suppress(ConnectionResetError):
            while piece := self.sock.recv(1 << 16):
                parts += piece
        return bytes(parts)

    def answer(self) -> Response:
        """Return the next response."""
        (size,) = struct.unpack(">i", self.take(4))
        response = decode_response(self.take(size))
        assert response is not None
        return response

    def ask(self, request: Request) -> Response:
        """Send one request and return its response."""
        self.send(request)
        return self.answer()

    def closed(self) -> bool:
        """Wait until the bookie closes the connection, and return True; False if it sends something first."""
        try:
            return self.sock.recv(1) == b""
        except ConnectionResetError:
            return True
