"""Ask a bookie for the space on its disks, over a connection of its own.

This module is for commands: it imports nothing that transfers entries, since that takes longer to load than the
response takes to arrive.
"""

import socket
from typing import NamedTuple

from bookie.client.wire import requests_v3 as requests
from bookie.client.wire.messages import FRAME_PREFIX, framed, parsed
from bookie.client.wire.unreachable import unreachable
from bookie.errors import BookieUnavailable, ReadError, RequestTimeout, error_from_v3
from bookie.pb import wire_pb2 as pb

__all__ = ["ask_space", "BookieInfo"]

ANSWER_BYTES_MAX = 4096


class BookieInfo(NamedTuple):
    """The space of a bookie's ledger disks in bytes, each file system counted once, and what else the bookie tells.

    Bookies of Apache BookKeeper tell only their space, and the rest is None.

    Attributes:
        total: The capacity.
        free: The free space.
        read_only: Whether the bookie refuses adds.
        adds: The number of entries added since the bookie's start.
        uptime_ms: The milliseconds since its start.
        journal_queue_bytes: The bytes of entries that wait for the journal.
        adds_per_s: The mean rate of adds since it was last polled, or since its start.
    """

    total: int
    free: int
    read_only: bool | None = None
    adds: int | None = None
    uptime_ms: int | None = None
    journal_queue_bytes: int | None = None
    adds_per_s: float | None = None


def ask_space(host: str, port: int, timeout_s: float) -> BookieInfo:
    """Send GET_BOOKIE_INFO to a bookie.

    Args:
        host: The host name or address of the bookie.
        port: The port of the bookie.
        timeout_s: The time limit for each step of the exchange, in seconds.

    Raises:
        BookieUnavailable: The connection failed, or the peer is not a bookie.
        RequestTimeout: The bookie did not answer in time.
        ReadError: The bookie failed to tell its space.
        UnauthorizedAccess: The bookie requires authentication.
    """
    address = f"{host}:{port}"
    try:
        with socket.create_connection((host, port), timeout=timeout_s) as sock, sock.makefile("rb") as answers:
            sock.sendall(framed(requests.bookie_info(1)))
            size = int.from_bytes(answers.read(FRAME_PREFIX), "big")
            answer = parsed(pb.Response, answers.read(min(size, ANSWER_BYTES_MAX)))
    except TimeoutError:
        raise RequestTimeout(f"{address}: bookie info: no answer in {timeout_s:g} s") from None
    except OSError as error:
        raise unreachable(address, error) from error
    except ValueError:
        raise BookieUnavailable(f"{address}: bookie info: malformed response; is a bookie listening there?") from None
    kind = error_from_v3(answer.status, ReadError)
    if kind is not None:
        raise kind(f"{address}: bookie info: {pb.StatusCode.Name(answer.status)}")
    return BookieInfo(answer.getBookieInfoResponse.totalDiskCapacity, answer.getBookieInfoResponse.freeDiskSpace)
