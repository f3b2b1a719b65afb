"""How much room a bookie's disks have, asked on a connection of its own.

Without anything that moves entries, which takes longer to load than the answer takes to come: for commands.
"""

import socket
from typing import NamedTuple

from bookie.client.wire import requests_v3 as requests
from bookie.client.wire.messages import FRAME_PREFIX, framed, parsed
from bookie.errors import BookieUnavailable, ReadError, RequestTimeout, error_from_v3
from bookie.pb import wire_pb2 as pb

__all__ = ["ask_space", "BookieInfo"]

ANSWER_BYTES_MAX = 4096


class BookieInfo(NamedTuple):
    """Bytes of a bookie's ledger disks, each file system counted once."""

    total: int
    free: int


def ask_space(host: str, port: int, timeout_s: float) -> BookieInfo:
    """What it answers to GET_BOOKIE_INFO. BookieUnavailable, RequestTimeout, ReadError, UnauthorizedAccess."""
    address = f"{host}:{port}"
    try:
        with socket.create_connection((host, port), timeout=timeout_s) as sock, sock.makefile("rb") as answers:
            sock.sendall(framed(requests.bookie_info(1)))
            size = int.from_bytes(answers.read(FRAME_PREFIX), "big")
            answer = parsed(pb.Response, answers.read(min(size, ANSWER_BYTES_MAX)))
    except TimeoutError:
        raise RequestTimeout(f"{address}: bookie info: no answer in {timeout_s:g} s") from None
    except OSError as error:
        raise BookieUnavailable(f"{address}: cannot connect ({error}); is a bookie listening there?") from error
    except ValueError:
        raise BookieUnavailable(f"{address}: bookie info: that is no answer; is a bookie listening there?") from None
    kind = error_from_v3(answer.status, ReadError)
    if kind is not None:
        raise kind(f"{address}: bookie info: {pb.StatusCode.Name(answer.status)}")
    return BookieInfo(answer.getBookieInfoResponse.totalDiskCapacity, answer.getBookieInfoResponse.freeDiskSpace)
