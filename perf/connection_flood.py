"""`python -m perf.connection_flood`: adds beside a peer that connects and disconnects continuously.

Starts a bookie on an empty directory. Adds at a fixed rate are measured in turn alone and beside connections to the
data port that are opened at a fixed rate and closed at once, by a process with the lowest priority. A lost or refused
add ends the measurement. Prints one JSON object, including the connections per second that the flood achieved.
"""

import json
import socket
import struct
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import click

from perf.load.build import build_all
from perf.paired import HERE, Aside, Plan, fresh, paired, plan_options
from perf.side_by_side.card import ROOT

DATA = ROOT / "build/perf/connection_flood"
TICK_S = 0.002
RESET = struct.pack("ii", 1, 0)
"""SO_LINGER: close with a reset, so that no local port of the flood remains in use."""


def flood(port: int, rate: int, parent: Connection) -> None:
    """Connect and disconnect until `parent` receives a message; then send the successful and failed connections per
    second.
    """
    made = failed = 0
    begun = time.monotonic()
    parent.send(HERE)
    while not parent.poll(TICK_S):
        while made + failed < rate * (time.monotonic() - begun):
            with socket.socket() as sock:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                sock.settimeout(1.0)
                try:
                    sock.connect(("127.0.0.1", port))
                except OSError:
                    failed += 1
                else:
                    made += 1
            if parent.poll():
                break
    took = time.monotonic() - begun
    parent.recv()
    parent.send({"made_per_s": round(made / took), "failed_per_s": round(failed / took)})


@click.command()
@click.option("--connects", default=5000, show_default=True, help="Connections a second.")
@plan_options(DATA, pairs=3, seconds=10.0)
def main(connects: int, directory: Path, **plan: Any) -> None:
    """Measure adds beside a flood of connections."""
    build_all()
    floods: list[Aside] = []
    with fresh(directory, {}) as bookie:

        def around() -> Aside:
            floods.append(Aside(flood, bookie.port, connects))
            return floods[-1]

        found = paired(bookie, Plan(**plan), around)
    print(json.dumps({"floods": [one.result for one in floods], **found}))


if __name__ == "__main__":
    main()
