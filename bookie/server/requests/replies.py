"""V3 responses of the policy threads. Pure functions over protobuf messages."""

from typing import Any

from bookie.pb import wire_pb2 as wire

__all__ = ["answer", "copied", "EBADREQ", "EBADVERSION", "EIO", "ENOLEDGER", "EOK", "EUA", "right_version"]

EOK, ENOLEDGER, EBADREQ, EIO, EUA, EBADVERSION = (
    wire.EOK,
    wire.ENOLEDGER,
    wire.EBADREQ,
    wire.EIO,
    wire.EUA,
    wire.EBADVERSION,
)


def answer(request: wire.Request, status: wire.StatusCode, **part: Any) -> bytes:
    """Return the usual response: a new header, and the operation's own message if there is one."""
    header = wire.BKPacketHeader(
        version=wire.VERSION_THREE, operation=request.header.operation, txnId=request.header.txnId
    )
    return wire.Response(header=header, status=status, **part).SerializeToString()


def copied(request: wire.Request, status: wire.StatusCode, **part: Any) -> bytes:
    """Return a response that echoes the request's header, including the priority, as AUTH requires."""
    return wire.Response(header=request.header, status=status, **part).SerializeToString()


def right_version(request: wire.Request) -> bool:
    """Return whether the request has the supported version."""
    return bool(request.header.version == wire.VERSION_THREE)
