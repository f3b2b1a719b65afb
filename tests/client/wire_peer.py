"""A TCP peer that a test scripts byte by byte, for what no healthy bookie does on request, such as torn frames.

The test's own thread is the peer; sockets belong to the `WirePeer`, which closes them.
"""

import socket
from types import TracebackType
from typing import Self

from bookie.client import Digest
from tests.reference import record as entries
from tests.reference import wire_v2 as model

WAIT_S = 60.0
DIGEST = Digest.of()
"""CRC32C with the empty password, the digest of the scripted peer's entries."""


class WirePeer:
    """A listener on loopback; `accept` accepts the channel's connection."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(WAIT_S)
        self._sock: socket.socket | None = None
        self.port: int = self._listener.getsockname()[1]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.hang_up()
        self._listener.close()

    @property
    def sock(self) -> socket.socket:
        """The accepted connection."""
        if self._sock is None:
            self._sock, _ = self._listener.accept()
            self._sock.settimeout(WAIT_S)
            self._sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self._sock

    def request(self) -> model.Request:
        """Receive the next request."""
        status, request = model.decode_request(self._exactly(int.from_bytes(self._exactly(4), "big")))
        assert status == model.OK
        assert request is not None
        return request

    def send(self, data: bytes, *, piece: int = 0) -> None:
        """Send bytes, in pieces of `piece` bytes if that is not 0."""
        for at in range(0, len(data), piece or len(data) or 1):
            self.sock.sendall(data[at : at + (piece or len(data))])

    def answer(self, *responses: model.Response) -> None:
        """Send whole responses in one piece."""
        self.send(b"".join(model.encode_response(response) for response in responses))

    def hang_up(self) -> None:
        """Close the connection."""
        if self._sock is not None:
            self._sock.close()

    def forget(self) -> None:
        """Close the connection; the next one is accepted when it is needed."""
        self.hang_up()
        self._sock = None

    def leave(self) -> socket.socket:
        """Return the connection, which stays open; the next one is accepted when it is needed."""
        sock, self._sock = self.sock, None
        return sock

    def go_back(self, sock: socket.socket) -> socket.socket:
        """Use a connection again that was left; the present one is left."""
        left, self._sock = self.sock, sock
        return left

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = self.sock.recv(size - len(data))
            assert part, "the channel hung up"
            data += part
        return data


def batch_answer(request_id: int, first: int, payloads: list[bytes]) -> model.Response:
    """Return a batch of entries of ledger 7, sealed with DIGEST."""
    sealed = [DIGEST.seal(7, first + k, payload, lac=-1, length=0) for k, payload in enumerate(payloads)]
    return model.Response(model.BATCH_READ, 0, 7, first, request_id, entries.pack(sealed))
