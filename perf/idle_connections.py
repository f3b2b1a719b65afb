"""`python -m perf.idle_connections`: memory of connections that send nothing, on each of the three ports.

For each port in turn, a bookie is started on an empty directory with sufficient limits. The growth of its resident
memory is measured after `--connections` connections (or as many as the limit of descriptors allows) are open, and
again after each has sent a first request and received the response. At the end all three ports are measured at once.
Prints one JSON object.
"""

import json
import resource
import socket
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from perf.load.build import build_all
from perf.paired import fresh
from perf.side_by_side.card import ROOT
from perf.side_by_side.servers import PROBE, OurBookie
from tests.fixtures.ports import free_port

DATA = ROOT / "build/perf/idle-connections"
PORTS = ("data", "http", "admin")
EACH = {"data": 1, "http": 1, "admin": 3}
"""Descriptors per connection of each port."""
OTHERS = 2500
"""Descriptors that the bookie needs for everything else."""
FIRST_WORDS = {
    "data": PROBE,
    "http": b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n",
    "admin": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]),
}
OWN = 16
"""Sockets that the bookie may have closed meanwhile for other reasons."""
LONG_MS = "600000"
WAIT_S = 60.0


def resident_bytes(pid: int) -> int:
    """Return the resident memory of a process in bytes."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()


def sockets_of(pid: int) -> int:
    """Return the number of open sockets of a process."""
    return sum(1 for one in Path(f"/proc/{pid}/fd").iterdir() if one.is_symlink() and "socket" in str(one.readlink()))


def settings_for(wanted: dict[str, int], ports: dict[str, int]) -> dict[str, str]:
    """Return settings with sufficient limits and timeouts."""
    found = {
        "adminPort": str(ports["admin"]),
        "httpServerEnabled": "true",
        "httpServerPort": str(ports["http"]),
        "adminHandshakeTimeoutMs": LONG_MS,
        "adminIdleTimeoutMs": LONG_MS,
        "httpServerReceiveTimeoutMs": LONG_MS,
        "serverMaxConnections": str(wanted["data"] + 100),
        "serverMaxConnectionsPerAddress": str(wanted["data"] + 100),
    }
    for key, port in (("adminMaxConnections", "admin"), ("httpServerMaxConnections", "http")):
        found[key] = found[f"{key}PerAddress"] = str(wanted[port] + 200)
    return found


def hold(stack: ExitStack, bookie: OurBookie, address: tuple[str, int], count: int) -> list[socket.socket]:
    """Open connections and wait until the bookie has accepted all of them.

    Raises:
        RuntimeError: it has not accepted them within a minute.
    """
    before = sockets_of(bookie.pid)
    found = [stack.enter_context(socket.create_connection(address, timeout=WAIT_S)) for _ in range(count)]
    deadline = time.monotonic() + WAIT_S
    while sockets_of(bookie.pid) < before + count - OWN:
        if time.monotonic() > deadline:
            raise RuntimeError(f"{sockets_of(bookie.pid) - before} of {count} connections were accepted at {address}")
        time.sleep(0.1)
    return found


def costs(directory: Path, wanted: dict[str, int], *, speak: bool) -> dict[str, Any]:
    """Return by how many MiB the bookie grows after opening connections, and after their first requests."""
    ports = {name: free_port() for name in ("admin", "http")}
    with fresh(directory, settings_for(wanted, ports)) as bookie, ExitStack() as stack:
        ports["data"] = bookie.port
        before = resident_bytes(bookie.pid)
        held = {port: hold(stack, bookie, ("127.0.0.1", ports[port]), count) for port, count in wanted.items() if count}
        silent = resident_bytes(bookie.pid) - before
        found: dict[str, Any] = {"connections": {port: len(socks) for port, socks in held.items()}}
        found["before_mib"] = before >> 20
        found["silent_mib"] = round(silent / (1 << 20), 1)
        if speak:
            for port, socks in held.items():
                for sock in socks:
                    sock.sendall(FIRST_WORDS[port])
                for sock in socks:
                    if not sock.recv(1 << 16):
                        raise RuntimeError(f"no answer at {port}")
            found["after_a_word_mib"] = round((resident_bytes(bookie.pid) - before) / (1 << 20), 1)
        return found


@click.command()
@click.option("--connections", default=10_000, show_default=True, help="Number of connections to each port.")
@click.option("--directory", default=DATA, show_default=True, type=click.Path(path_type=Path))
def main(connections: int, directory: Path) -> None:
    """Measure the memory of idle connections."""
    build_all()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    room = hard - OTHERS
    found: dict[str, Any] = {"descriptors": hard}
    for port in PORTS:
        wanted = dict.fromkeys(PORTS, 0) | {port: min(connections, (room - 3 * 200) // EACH[port])}
        found[port] = costs(directory, wanted, speak=True)
    together = min(connections, (room - 3 * 200) // sum(EACH.values()))
    found["together"] = costs(directory, dict.fromkeys(PORTS, together), speak=False)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
