"""Requests of either protocol that the test itself puts on a socket, and the answer's status as the bookie sent it.

Each asker has one connection. V2 uses the model of the tests, V3 the protobuf library.
"""

import socket
from types import TracebackType
from typing import Any, Self

from bookie.pb import wire_pb2 as pb
from tests.interop.proxy import read_frame
from tests.reference import wire_v2 as v2

WAIT_S = 60.0
CLOSED = "closed"


class Wire:
    """One connection to a bookie on loopback."""

    def __init__(self, port: int) -> None:
        self.sock = socket.create_connection(("127.0.0.1", port), timeout=WAIT_S)
        self._transaction = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.sock.close()

    def send(self, operation: int, *, version: int = 3, priority: int = 0, **parts: Any) -> int:
        """Send a V3 request and return its transaction."""
        self._transaction += 1
        header = pb.BKPacketHeader(version=version, operation=operation, txnId=self._transaction)  # type: ignore[arg-type]
        if priority:
            header.priority = priority
        body = pb.Request(header=header, **parts).SerializeToString()
        self.sock.sendall(len(body).to_bytes(4, "big") + body)
        return self._transaction

    def receive(self) -> pb.Response:
        """Return the next V3 answer. Raises ConnectionError when the bookie closes."""
        return pb.Response.FromString(read_frame(self.sock)[4:])

    def ask(self, operation: int, **parts: Any) -> pb.Response:
        """Send a V3 request and return the next answer, which must be its own."""
        transaction = self.send(operation, **parts)
        answer = self.receive()
        assert (answer.header.txnId, answer.header.operation) == (transaction, operation)
        return answer

    def ask_v2(self, request: v2.Request) -> v2.Response:
        """Send a V2 request and return the next answer. Raises ConnectionError when the bookie closes."""
        self.sock.sendall(v2.encode_request(request))
        answer = v2.decode_response(read_frame(self.sock)[4:])
        assert answer is not None
        return answer


def status(answer: pb.Response) -> int:
    """Return the status, which a sub-response must repeat."""
    for field, part in answer.ListFields():
        if field.name.endswith("Response") and field.name not in {"authResponse", "startTLSResponse"}:
            assert part.status == answer.status, f"{field.name} says {part.status}, the answer {answer.status}"
    return answer.status
