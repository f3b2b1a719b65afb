"""`python -m perf.attacks`: the latency of honest clients during attacks.

One bookie with tokens, TLS and all three ports. A reader, a writer, a client that logs in anew each time, a probe and
an operator send requests at a steady pace, alone and beside each attack. The attackers are one process with the lowest
priority, on addresses of their own. Prints a table in Markdown: medians and 99th percentiles in milliseconds, and how
often an honest client was disconnected, refused or left without a response.
"""

import json
import shutil
import time
from pathlib import Path

import click

from perf.attacks.catalogue import ENTRIES, LEDGER, TOKEN, Attack, attacks
from perf.attacks.crowd import gather
from perf.attacks.innocents import Doors, Noticed, innocents
from perf.paired import Aside
from perf.side_by_side.card import ROOT
from perf.slow_readers import memory_mib
from perf.tls_batches import tls_keys
from tests.fixtures.bookies import BookieProcess
from tests.fixtures.ports import free_port
from tests.hostile.auth_frames import auth, receive
from tests.hostile.peer import Peer, add

DATA = ROOT / "build/perf/attacks"
FAILURES_SHOWN = 3
Seen = dict[str, Noticed]


def watch(doors: Doors, seconds: float) -> Seen:
    """Run the honest clients for some seconds; return what they observed."""
    everybody = innocents(doors)
    for one in everybody:
        one.start()
    time.sleep(seconds)
    return {one.name_of: one.leave() for one in everybody}


def cell(noticed: Noticed) -> str:
    """Return the median and p99 as text."""
    return f"{noticed.ms(0.5):.2f} / {noticed.ms(0.99):.1f}"


def row(name: str, bound: str, seen: Seen, pid: int) -> str:
    """Return a row of the table."""
    failed = sum(len(noticed.failed) for noticed in seen.values())
    return f"| {name} | {bound} | {' | '.join(map(cell, seen.values()))} | {failed} | {memory_mib(pid, 'VmRSS'):.0f} |"


def start(directory: Path) -> tuple[BookieProcess, Doors]:
    """Start a bookie and write a ledger to read."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    tokens = directory / "tokens"
    tokens.touch(mode=0o600)
    tokens.write_bytes(TOKEN + b"\n")
    settings = {
        "bookieAuthProviderFactoryClass": "token",
        "authTokenFile": str(tokens),
        "httpServerEnabled": "true",
        "httpServerPort": str(free_port()),
        **tls_keys(directory / "keys"),
    }
    bookie = BookieProcess(directory, f"lmdb://{directory}/metadata", settings).start()
    with Peer(bookie.address) as peer:
        peer.sock.sendall(auth(2, "token", TOKEN))
        receive(peer)
        for entry in range(ENTRIES):
            if peer.ask(add(LEDGER, entry, bytes(1000))).code:
                raise RuntimeError(f"entry {entry} was refused")
    http, grpc = (int(where.rpartition(":")[2]) for where in (bookie.planes["http"], bookie.admin))
    return bookie, Doors(bookie.port, http, grpc)


def measure(one: Attack, doors: Doors, seconds: float) -> tuple[Seen, dict[str, int]]:
    """Run the honest clients beside an attack."""
    with Aside(gather, one.manners, getattr(doors, one.manners.door)) as crowd:
        seen = watch(doors, seconds)
    return seen, crowd.result


@click.command(help=__doc__)
@click.option("--seconds", default=5.0, show_default=True, help="Duration of each measurement.")
@click.option("--only", default="", help="Run only attacks whose name contains this.")
@click.option("--directory", default=DATA, show_default=True, type=click.Path(path_type=Path))
def main(seconds: float, only: str, directory: Path) -> None:
    """Print the table; exit with 1 if an honest client was disconnected or refused."""
    bookie, doors = start(directory)
    harmed = False
    try:
        watch(doors, 1.0)  # a warm-up
        names = list(alone := watch(doors, seconds))
        print(f"| attack | bound | {' | '.join(names)} | failures | resident, MiB |")
        print("|---" * (len(names) + 4) + "|")
        print(row("none", "", alone, bookie.pid), flush=True)
        for one in attacks():
            if only in one.name:
                seen, crowd = measure(one, doors, seconds)
                print(row(one.name, one.bound, seen, bookie.pid), flush=True)
                failed = {name: noticed.failed[:FAILURES_SHOWN] for name, noticed in seen.items() if noticed.failed}
                harmed |= bool(failed)
                click.echo(json.dumps({"crowd": crowd, "failed": failed}), err=True)
    finally:
        bookie.stop()
        shutil.rmtree(directory, ignore_errors=True)
    raise SystemExit(harmed)


if __name__ == "__main__":
    main()
