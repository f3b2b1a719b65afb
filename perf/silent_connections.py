"""`python -m perf.silent_connections`: latency of honest clients beside thousands of silent connections.

Starts a bookie with TLS on an empty directory. Adds at a fixed rate are measured in turn alone and beside connections
that never send anything, frames that arrive one byte per second, and TLS handshakes that do the same. These come from
a process with the lowest priority, and reconnect whenever they are closed. Prints one JSON object.
"""

import json
import resource
import select
import socket
import ssl
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import click

from bookie.client.wire.messages import framed
from bookie.pb import wire_pb2 as pb
from perf.idle_polls import first_entry
from perf.load.build import build_all
from perf.paired import HERE, Aside, Plan, fresh, paired, plan_options
from perf.side_by_side.card import ROOT
from perf.tls_batches import tls_keys

DATA = ROOT / "build/perf/silent_connections"
IDLE, FRAMES, HANDSHAKES = "idle", "slow frames", "slow handshakes"
ROUND_S = 1.0


def start_tls() -> bytes:
    """Return the request that precedes a TLS handshake."""
    header = pb.BKPacketHeader(version=pb.VERSION_THREE, operation=pb.START_TLS, txnId=1)
    return framed(pb.Request(header=header, startTLSRequest=pb.StartTLSRequest()))


def client_hello() -> bytes:
    """Return the first message of a TLS handshake."""
    out = ssl.MemoryBIO()
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        context.wrap_bio(ssl.MemoryBIO(), out).do_handshake()
    except ssl.SSLWantReadError:
        return out.read()
    raise RuntimeError("a handshake ended before it began")


@dataclass
class Intruder:
    """A connection: what it sends, how many bytes of that at first, and how many it has sent."""

    kind: str
    words: bytes
    at_once: int
    sock: socket.socket | None = None
    said: int = 0


@dataclass
class SilentConnections:
    """All silent connections, in one thread."""

    port: int
    members: list[Intruder]
    disconnected: Counter[str] = field(default_factory=Counter)
    """By kind: the number of connections that the bookie has closed."""

    def run(self, parent: Connection) -> None:
        """Keep the connections until `parent` receives a message; then send how many were closed, by kind."""
        watch = select.epoll()
        everybody: dict[int, Intruder] = {}
        ready = False
        while not parent.poll():
            begin = time.monotonic()
            for one in self.members:
                if one.sock is None:
                    one.sock = socket.create_connection(("127.0.0.1", self.port), timeout=30)
                    one.sock.setblocking(False)
                    one.said = 0
                    everybody[one.sock.fileno()] = one
                    watch.register(one.sock, select.EPOLLIN | select.EPOLLRDHUP)
                self._say(one)
            if not ready:
                ready = True
                parent.send(HERE)
            while (left := begin + ROUND_S - time.monotonic()) > 0:
                for number, _ in watch.poll(left, 256):
                    self._hear(everybody, number)
        parent.recv()
        parent.send(dict(self.disconnected))

    def _say(self, one: Intruder) -> None:
        assert one.sock is not None
        size = one.at_once if one.said == 0 else 1
        if one.said < len(one.words):
            try:
                one.said += one.sock.send(one.words[one.said : one.said + size])
            except OSError:
                return  # `_hear` notices it too

    def _hear(self, everybody: dict[int, Intruder], number: int) -> None:
        one = everybody[number]
        assert one.sock is not None
        try:
            alive = bool(one.sock.recv(4096))
        except OSError:
            alive = False
        if not alive:
            self.disconnected[one.kind] += 1
            del everybody[number]
            one.sock.close()
            one.sock = None


def gather(port: int, idle: int, frames: int, handshakes: int) -> SilentConnections:
    """Return a number of connections of each kind."""
    request, hello, frame = start_tls(), client_hello(), first_entry()
    members = [Intruder(IDLE, b"", 0) for _ in range(idle)]
    members += [Intruder(FRAMES, frame, 1) for _ in range(frames)]
    members += [Intruder(HANDSHAKES, request + hello, len(request)) for _ in range(handshakes)]
    return SilentConnections(port, members)


@click.command()
@click.option("--idle", default=5000, show_default=True, help="Connections that send nothing.")
@click.option("--frames", default=200, show_default=True, help="Connections that send a frame at one byte per second.")
@click.option(
    "--handshakes", default=2000, show_default=True, help="Connections in a TLS handshake at one byte per second."
)
@plan_options(DATA, pairs=3, seconds=6.0)
def main(idle: int, frames: int, handshakes: int, directory: Path, **plan: Any) -> None:
    """Measure adds beside malicious connections."""
    build_all()
    need = idle + frames + handshakes + 200
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(need, hard)), hard))
    groups: list[Aside] = []
    with (
        tempfile.TemporaryDirectory() as keys,
        fresh(
            directory,
            {"serverMaxConnections": str(need), "serverMaxConnectionsPerAddress": "0", **tls_keys(Path(keys))},
        ) as bookie,
    ):

        def around() -> Aside:
            groups.append(Aside(gather(bookie.port, idle, frames, handshakes).run))
            return groups[-1]

        found = paired(bookie, Plan(**plan), around)
    disconnected: Counter[str] = Counter()
    for one in groups:
        disconnected.update(one.result)
    print(json.dumps({"disconnected": disconnected, **found}))


if __name__ == "__main__":
    main()
