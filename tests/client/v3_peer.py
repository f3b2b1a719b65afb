"""The bookie's end of a V3 connection, played by the test through the protobuf library."""

from typing import Any

from bookie.pb import wire_pb2 as pb
from tests.client.wire_peer import WirePeer


class V3Peer(WirePeer):
    """A `WirePeer` that speaks V3."""

    def ask(self) -> pb.Request:
        """Receive the next request."""
        return pb.Request.FromString(self._exactly(int.from_bytes(self._exactly(4), "big")))

    def respond(self, *responses: pb.Response, piece: int = 0) -> None:
        """Send whole responses, in pieces of `piece` bytes if that is not 0."""
        bodies = [response.SerializeToString() for response in responses]
        self.send(b"".join(len(body).to_bytes(4, "big") + body for body in bodies), piece=piece)


def ok(request: pb.Request, **parts: Any) -> pb.Response:
    """Return the response EOK to a request, with sub-messages by name."""
    header = pb.BKPacketHeader(version=pb.VERSION_THREE, operation=request.header.operation, txnId=request.header.txnId)
    return pb.Response(header=header, status=pb.EOK, **parts)


def refused(request: pb.Request, status: int) -> pb.Response:
    """Return a refusal without a sub-message."""
    answer = ok(request)
    answer.status = status  # type: ignore[assignment]
    return answer


def entry_read(request: pb.Request, body: bytes, entry: int | None = None, lac: int | None = None) -> pb.Response:
    """Return the response to a read, with an entry of the ledger."""
    asked = request.readRequest
    part = pb.ReadResponse(status=pb.EOK, ledgerId=asked.ledgerId, body=body, maxLAC=lac)
    part.entryId = asked.entryId if entry is None else entry
    return ok(request, readResponse=part)


def batch_read(request: pb.Request, bodies: list[bytes], lac: int | None = None) -> pb.Response:
    """Return the response to a batch read."""
    asked = request.batchReadRequest
    part = pb.BatchReadResponse(status=pb.EOK, ledgerId=asked.ledgerId, startEntryId=asked.startEntryId, maxLAC=lac)
    part.body.extend(bodies)
    return ok(request, batchReadResponse=part)
