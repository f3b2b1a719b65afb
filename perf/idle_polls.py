"""`python -m perf.idle_polls`: resident memory of idle long polls, and the latency of adds beside them.

Starts a bookie on an empty directory. Adds at a fixed rate are measured in turn alone and beside `--polls` connections
with one waiting read each. Prints one JSON object.
"""

import json
import resource
import socket
import struct
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import click

from bookie.pb import wire_pb2 as pb
from perf.load.build import build_all
from perf.paired import Plan, fresh, paired, plan_options
from perf.side_by_side.card import ROOT

DATA = ROOT / "build/perf/idle-polls"
LEDGER = 1 << 40
"""A ledger id far from those that bkload writes."""
HOUR_MS = 3_600_000
KEY = bytes(20)


def frame(request: Any) -> bytes:
    """Return a V3 message as a frame."""
    body = request.SerializeToString()
    return struct.pack(">i", len(body)) + bytes(body)


def header(operation: Any, txn: int) -> pb.BKPacketHeader:
    """Return the header of a V3 request."""
    return pb.BKPacketHeader(version=pb.VERSION_THREE, operation=operation, txnId=txn)


def first_entry() -> bytes:
    """Return the add of entry 0 with LAC -1, which creates the ledger."""
    body = struct.pack(">qqqq", LEDGER, 0, -1, 0)
    add = pb.AddRequest(ledgerId=LEDGER, entryId=0, masterKey=KEY, body=body)
    return frame(pb.Request(header=header(pb.ADD_ENTRY, 1), addRequest=add))


def poll_and_read() -> bytes:
    """Return a long poll for entry 0 to be confirmed, which never happens, followed by a plain read, whose response
    shows that the poll is waiting.
    """
    wait = pb.ReadRequest(
        ledgerId=LEDGER, entryId=-1, previousLAC=-1, timeOut=HOUR_MS, flag=pb.ReadRequest.ENTRY_PIGGYBACK
    )
    plain = pb.ReadRequest(ledgerId=LEDGER, entryId=0)
    return frame(pb.Request(header=header(pb.READ_ENTRY, 1), readRequest=wait)) + frame(
        pb.Request(header=header(pb.READ_ENTRY, 2), readRequest=plain)
    )


def answered(sock: socket.socket) -> None:
    """Receive one response.

    Raises:
        RuntimeError: it is not that of the plain read.
    """
    (size,) = struct.unpack(">i", sock.recv(4, socket.MSG_WAITALL))
    answer = pb.Response.FromString(sock.recv(size, socket.MSG_WAITALL))
    if answer.status != pb.EOK or (answer.header.txnId == 1 and answer.header.operation == pb.READ_ENTRY):
        raise RuntimeError(f"a poll did not wait: {answer}")


def resident_bytes(pid: int) -> int:
    """Return the resident memory of a process in bytes."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()


def hold(stack: ExitStack, port: int, polls: int) -> None:
    """Open connections with one waiting poll each; the stack closes them."""
    request = poll_and_read()
    for _ in range(polls):
        sock = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=30))
        sock.sendall(request)
        answered(sock)


@click.command()
@click.option("--polls", default=10_000, show_default=True, help="Number of connections, with one waiting read each.")
@plan_options(DATA, pairs=2, seconds=6.0)
def main(polls: int, directory: Path, **plan: Any) -> None:
    """Measure the memory of idle long polls, and adds beside them."""
    build_all()
    each: list[float] = []
    settings = {"serverMaxConnections": str(polls + 100), "serverMaxConnectionsPerAddress": "0"}
    with fresh(directory, {**settings, "serverNumIOThreads": "2"}) as bookie:
        with socket.create_connection(("127.0.0.1", bookie.port), timeout=30) as sock:
            sock.sendall(first_entry())
            answered(sock)

        @contextmanager
        def waiting() -> Iterator[None]:
            with ExitStack() as stack:
                before = resident_bytes(bookie.pid)
                hold(stack, bookie.port, polls)
                each.append((resident_bytes(bookie.pid) - before) / polls)
                yield

        found = paired(bookie, Plan(**plan), waiting)
    print(json.dumps({"polls": polls, "resident_bytes_each": each, **found}))


if __name__ == "__main__":
    main()
