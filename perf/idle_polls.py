"""`python -m perf.idle_polls`: what idle long polls cost: resident memory each, and the latency of adds beside them.

Starts our bookie on an empty directory. In turn: adds at a fixed rate alone, and beside `--polls` connections with one
waiting read each. Prints one JSON object.
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
"""Far from those that bkload writes."""
HOUR_MS = 3_600_000
KEY = bytes(20)


def frame(request: Any) -> bytes:
    """A V3 message with its length."""
    body = request.SerializeToString()
    return struct.pack(">i", len(body)) + bytes(body)


def header(operation: Any, txn: int) -> pb.BKPacketHeader:
    """Of a V3 request."""
    return pb.BKPacketHeader(version=pb.VERSION_THREE, operation=operation, txnId=txn)


def first_entry() -> bytes:
    """Makes the ledger: its entry 0, LAC -1."""
    body = struct.pack(">qqqq", LEDGER, 0, -1, 0)
    add = pb.AddRequest(ledgerId=LEDGER, entryId=0, masterKey=KEY, body=body)
    return frame(pb.Request(header=header(pb.ADD_ENTRY, 1), addRequest=add))


def poll_and_read() -> bytes:
    """A wait for entry 0 to be confirmed, which never is; then a plain read, whose answer tells that the wait began."""
    wait = pb.ReadRequest(
        ledgerId=LEDGER, entryId=-1, previousLAC=-1, timeOut=HOUR_MS, flag=pb.ReadRequest.ENTRY_PIGGYBACK
    )
    plain = pb.ReadRequest(ledgerId=LEDGER, entryId=0)
    return frame(pb.Request(header=header(pb.READ_ENTRY, 1), readRequest=wait)) + frame(
        pb.Request(header=header(pb.READ_ENTRY, 2), readRequest=plain)
    )


def answered(sock: socket.socket) -> None:
    """Take one answer. Raises RuntimeError when it is not the read's."""
    (size,) = struct.unpack(">i", sock.recv(4, socket.MSG_WAITALL))
    answer = pb.Response.FromString(sock.recv(size, socket.MSG_WAITALL))
    if answer.status != pb.EOK or (answer.header.txnId == 1 and answer.header.operation == pb.READ_ENTRY):
        raise RuntimeError(f"a poll did not wait: {answer}")


def resident_bytes(pid: int) -> int:
    """Of the bookie."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()


def hold(stack: ExitStack, port: int, polls: int) -> None:
    """Open so many connections, each with a poll that waits, until the stack unwinds."""
    request = poll_and_read()
    for _ in range(polls):
        sock = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=30))
        sock.sendall(request)
        answered(sock)


@click.command()
@click.option("--polls", default=10_000, show_default=True, help="Connections, with one waiting read each.")
@plan_options(DATA, pairs=2, seconds=6.0)
def main(polls: int, directory: Path, **plan: Any) -> None:
    """Memory of idle long polls, and adds beside them."""
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
