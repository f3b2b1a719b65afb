"""A V3 server for the load generator's tests, with the protobuf library and one generated ledger."""

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from bookie.client import Digest, DigestType
from bookie.pb import wire_pb2 as pb

DIGEST = Digest.of(DigestType.CRC32C)


def answer(request: pb.Request, ledger: int, entries: int, size: int) -> pb.Response:
    """Respond to an add with success, and to reads with entries 0 to `entries` - 1 of a ledger, and a LAC."""
    out = pb.Response(header=request.header, status=pb.EOK)

    def entry(k: int) -> bytes:
        return DIGEST.seal(ledger, k, bytes(size), lac=k - 1, length=(k + 1) * size)

    if request.HasField("addRequest"):
        add = request.addRequest
        DIGEST.open(add.body, add.ledgerId, add.entryId)
        out.addResponse.MergeFrom(pb.AddResponse(status=pb.EOK, ledgerId=add.ledgerId, entryId=add.entryId))
        return out
    if request.HasField("batchReadRequest"):
        wanted, first = request.batchReadRequest.ledgerId, request.batchReadRequest.startEntryId
    else:
        wanted, first = request.readRequest.ledgerId, request.readRequest.entryId
    if wanted != ledger or first >= entries:
        return pb.Response(header=request.header, status=pb.ENOENTRY if wanted == ledger else pb.ENOLEDGER)
    if request.HasField("batchReadRequest"):
        body = [entry(k) for k in range(first, min(first + request.batchReadRequest.maxCount, entries))]
        out.batchReadResponse.MergeFrom(
            pb.BatchReadResponse(status=pb.EOK, ledgerId=ledger, startEntryId=first, body=body, maxLAC=entries - 1)
        )
        return out
    out.readResponse.MergeFrom(
        pb.ReadResponse(status=pb.EOK, ledgerId=ledger, entryId=first, body=entry(first), maxLAC=entries - 1)
    )
    return out


@contextmanager
def v3_peer(ledger: int, entries: int, size: int) -> Iterator[int]:
    """Serve until the block ends; yield the port. A request that cannot be parsed closes the connection."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            while len(head := self.rfile.read(4)) == 4:
                request = pb.Request.FromString(self.rfile.read(int.from_bytes(head)))
                reply = answer(request, ledger, entries, size).SerializeToString()
                self.wfile.write(len(reply).to_bytes(4) + reply)

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True

    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()
