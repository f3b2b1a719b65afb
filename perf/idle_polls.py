"""`python -m perf.idle_polls`: what idle long polls cost: resident memory each, and the latency of adds beside them.

Starts our bookie on an empty directory. In turn: adds at a fixed rate alone, and beside `--polls` connections with one
waiting read each. Prints one JSON object.
"""

import json
import resource
import shutil
import socket
import struct
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from bookie.pb import wire_pb2 as pb
from perf.load.build import build_all
from perf.side_by_side.card import ROOT
from perf.side_by_side.drive import bkload
from perf.side_by_side.servers import OurBookie

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


def adds(bookie: OurBookie, rate: int, seconds: float, first_ledger: int) -> dict[str, float]:
    """Latencies of adds of 1 KiB at this rate."""
    done = bkload(
        "add", port=bookie.port, size=1024, outstanding=1000, ledgers=10, warmup=1, rate=rate, seconds=seconds,
        first_ledger=first_ledger,
    )  # fmt: skip
    return {name: done["latency_us"][name] for name in ("p50", "p99", "p999")}


@click.command()
@click.option("--polls", default=10_000, show_default=True, help="Connections, with one waiting read each.")
@click.option("--pairs", default=2, show_default=True, help="Measurements without and with them.")
@click.option("--seconds", default=6.0, show_default=True, help="Of adds in each measurement.")
@click.option("--rate", default=20_000, show_default=True, help="Adds a second, 1 KiB each.")
@click.option("--directory", default=DATA, show_default=True, type=click.Path(path_type=Path))
def main(polls: int, pairs: int, seconds: float, rate: int, directory: Path) -> None:
    """Memory of idle long polls, and adds beside them."""
    build_all()
    shutil.rmtree(directory, ignore_errors=True)
    bookie = OurBookie(directory)
    bookie.start({"serverMaxConnections": str(polls + 100), "serverNumIOThreads": "2"})
    each: list[float] = []
    latency_us: dict[str, list[dict[str, float]]] = {"without": [], "with": []}
    try:
        with socket.create_connection(("127.0.0.1", bookie.port), timeout=30) as sock:
            sock.sendall(first_entry())
            answered(sock)
        adds(bookie, rate, 2.0, 0)  # its journals are made
        for turn in range(2 * pairs):
            name = ("without", "with", "with", "without")[turn % 4]
            with ExitStack() as stack:
                if name == "with":
                    before = resident_bytes(bookie.pid)
                    hold(stack, bookie.port, polls)
                    each.append((resident_bytes(bookie.pid) - before) / polls)
                latency_us[name].append(adds(bookie, rate, seconds, 100 + 100 * turn))
    finally:
        bookie.stop()
        shutil.rmtree(directory, ignore_errors=True)
    print(json.dumps({"polls": polls, "resident_bytes_each": each, "rate": rate, "add_latency_us": latency_us}))


if __name__ == "__main__":
    main()
