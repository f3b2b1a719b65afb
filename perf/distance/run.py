"""`python -m perf.distance.run`: clients and bookies on a simulated network, compared with plain TCP streams.

Each bookie and the client are on hosts of their own (network namespaces), with links of 1 Gbit/s. The relay between
them gives the packets their distance. On the first bookie's host is ZooKeeper, or where there is no Java the metadata
store of that bookie; Java's client is measured where there is Java. Journals are on the disk that holds
the directory, or in memory with `--directory /dev/shm`. Appends one JSON line per distance to perf/results; `python -m
perf.distance.table` makes the table of perf/README.md of them. Needs root, or what else it takes to make namespaces.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import click

from perf.distance.network import Network, Unavailable, network
from perf.side_by_side.card import ROOT, append, machine_card
from tests.fixtures.bookies import BookieProcess
from tests.fixtures.java_peer import JavaPeer, JavaUnavailable, find_peer
from tests.fixtures.zookeeper import ZooKeeperServer
from tests.interop.driver import Driver

DISTANCES = ((0.1, 0.0), (1.0, 0.0), (10.0, 0.0), (10.0, 0.1))
"""Milliseconds to a bookie and back, and percent of packets that are lost."""
MBIT_S = 1000
BOOKIES = 4
"""One more than a ledger has, so that a bookie that has gone can be replaced."""
BYTES = 1024
ROWS = ROOT / "perf/results/distance.jsonl"
CACHES = {"dbStorage_writeCacheMaxSizeMb": "256", "dbStorage_readAheadCacheMaxSizeMb": "64", "logLevel": "warning"}


JAVA_WARM = 200_000
"""Entries that Java's client adds before it is measured, so that its code is compiled."""


class FarBookie(BookieProcess):
    """A bookie on a host of the network, which is one more than its number."""

    def __init__(self, directory: Path, net: Network, host: int, metadata: str) -> None:
        address = net.address(host)
        open_to_all = {"adminHost": address, "adminInsecureAllowed": "true"}
        super().__init__(directory, metadata, {**CACHES, **open_to_all, "advertisedAddress": address})
        del self.settings["listeningInterface"]
        self.host = host
        self._on = net.on(host)

    def command(self, *options: str) -> list[str]:
        """Return the command line, on the bookie's host."""
        return [*self._on, *super().command(*options)]


class Place:
    """The network with its bookies and stream servers, and the client's host."""

    def __init__(self, net: Network, bookies: list[FarBookie], uri: str, java: Driver | None) -> None:
        self.net, self.bookies, self.uri, self.java = net, bookies, uri, java

    def client(self, module: str, *words: object) -> "subprocess.Popen[str]":
        """Start a program on the client's host."""
        command = [*self.net.on(0), sys.executable, "-m", f"perf.distance.{module}", *map(str, words)]
        environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'admin'}"}
        return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)

    def value(self, module: str, *words: object) -> float:
        """Run a program on the client's host, and return the number that it prints last."""
        return result(self.client(module, *words))

    def gap(self, take: Callable[[FarBookie], None], give: Callable[[FarBookie], None]) -> float:
        """Return the longest time without an acknowledgement when a bookie of a ledger is taken away."""
        adding = self.client("client", "gap", self.uri)
        assert adding.stdout is not None
        chosen = json.loads(adding.stdout.readline())
        gone = next(one for one in self.bookies[1:] if one.id in chosen)  # the first one has the metadata store
        take(gone)
        try:
            return result(adding)
        finally:
            give(gone)


class JavaClient:
    """Apache BookKeeper's client on the client's host, over V2 like ours."""

    def __init__(self, driver: Driver, uri: str) -> None:
        self._driver = driver
        driver.call("connect", uri=uri, v2=True)

    def adds(self, outstanding: int, count: int) -> float:
        """Return the entries per second that it adds to a ledger of three bookies of which two acknowledge."""
        handle = self._driver.call("create", e=3, w=3, a=2)["handle"]
        done = self._driver.call("add", seconds=600, handle=handle, n=count, size=BYTES, window=outstanding, same=True)
        self._driver.call("close", handle=handle)
        return float(done["rate"])

    def reads(self, count: int) -> float:
        """Return the entries per second that batches of 500, four outstanding, bring from one bookie."""
        made = self._driver.call("create", e=1, w=1, a=1)
        handle = made["handle"]
        self._driver.call("add", seconds=600, handle=handle, n=count, size=BYTES, window=1000, same=True)
        self._driver.call("close", handle=handle)
        again = self._driver.call("open", ledger=made["ledger"])["handle"]
        done = self._driver.call("timed_read", seconds=600, handle=again, last=count - 1, count=500, ahead=4)
        return float(done["entries"]) / float(done["seconds"])


def result(running: "subprocess.Popen[str]") -> float:
    """Return the number that a program prints last."""
    said, _ = running.communicate(timeout=600)
    if running.returncode:
        raise RuntimeError(f"{running.args!r} ended with exit code {running.returncode}")
    return float(json.loads(said.splitlines()[-1]))


@contextmanager
def place(directory: Path, mbit_s: float, rtt_ms: float, loss_percent: float) -> Iterator[Place]:
    """Start bookies and stream servers at a distance, and Java's client if there is Java.

    Raises:
        Unavailable: there are no namespaces.
    """
    with ExitStack() as ends:
        net = ends.enter_context(network(BOOKIES + 1, mbit_s, rtt_ms, loss_percent))
        bookies: list[FarBookie] = []
        peer = java_or_none()
        uri = f"lmdb://{directory}/metadata"
        if peer is not None:
            zookeeper = ZooKeeperServer(peer, directory / "zookeeper", host=net.address(1), on=net.on(1))
            ends.callback(zookeeper.kill)
            zookeeper.launch()
            uri = f"zk+hierarchical://{zookeeper.address}/ledgers"
            first = FarBookie(directory / "first", net, 1, uri)
            environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'admin'}"}
            subprocess.run(first.command("--init-cluster"), cwd=ROOT, env=environment, check=True)
        for host in range(1, BOOKIES + 1):
            bookies.append(FarBookie(directory / str(host), net, host, uri))
            ends.callback(bookies[-1].kill)
            bookies[-1].start()
            if peer is None:
                uri = f"grpc://{bookies[0].admin}"
            serving = subprocess.Popen(
                [*net.on(host), sys.executable, "-m", "perf.distance.stream", "serve"],
                cwd=ROOT,
                stdout=subprocess.PIPE,
                text=True,
            )
            ends.enter_context(serving)
            ends.callback(serving.kill)
            assert serving.stdout is not None
            assert serving.stdout.readline() == "ready\n"
        driver = Driver(peer, directory / "driver.log", heap_mb=1024, direct_mb=1024, on=net.on(0)) if peer else None
        if driver is not None:
            ends.callback(driver.stop)
            driver.start()
        yield Place(net, bookies, uri, driver)


def java_or_none() -> JavaPeer | None:
    """Return Java with Apache BookKeeper's client, if it is there."""
    try:
        return find_peer()
    except JavaUnavailable:
        return None


def measure(at: Place, rtt_ms: float, loss_percent: float, entries: int) -> dict[str, float]:
    """Return all figures of a distance, in MB of payload per second, adds per second, and seconds."""
    megabytes = max(entries * BYTES // 1_000_000, 1)
    servers = [at.net.address(host) for host in (1, 2, 3)]
    found = {
        "stream_three_mb_s": at.value("stream", "up", megabytes, *servers),
        "stream_down_mb_s": at.value("stream", "down", 3 * megabytes, servers[0]),
    }
    lone = max(10, round(min(2000.0, 3000.0 / rtt_ms) * entries / 60_000))
    for client in ("asyncio", "threads"):
        for outstanding, count in ((1, lone), (1000, entries), (10_000, entries)):
            if loss_percent and outstanding < 10_000:
                continue
            found[f"{client}_{outstanding}"] = at.value("client", f"adds_{client}", at.uri, outstanding, count)
    if at.java is not None:
        java = JavaClient(at.java, at.uri)
        java.adds(1000, JAVA_WARM)
        for outstanding, count in ((1, lone), (1000, entries), (10_000, entries)):
            if not loss_percent or outstanding == 10_000:
                found[f"java_{outstanding}"] = java.adds(outstanding, count)
        java.reads(entries)
        found["java_reads_mb_s"] = java.reads(3 * entries) * BYTES / 1e6
    found["reads_mb_s"] = at.value("client", "reads", at.uri, 3 * entries) * BYTES / 1e6
    found["copy_mb_s"] = at.value("client", "copy", at.uri, entries) * BYTES / 1e6
    found["recovery_s"] = at.value("client", "recovery", at.uri, 1000)
    if not loss_percent:
        found["gap_frozen_s"] = at.gap(BookieProcess.freeze, BookieProcess.thaw)
        found["gap_cut_s"] = at.gap(lambda one: at.net.cut(one.host), lambda one: at.net.join(one.host))
    return found


@click.command()
@click.option("--directory", type=click.Path(path_type=Path), default=ROOT / "build/perf/distance", show_default=True)
@click.option("--entries", default=60_000, show_default=True, help="Of a measurement of adds; reads have three times.")
@click.option("--rows", type=click.Path(path_type=Path), default=ROWS, show_default=True, help="Where lines go.")
def main(directory: Path, entries: int, rows: Path) -> None:
    """Measure at all distances."""
    for rtt_ms, loss_percent in DISTANCES:
        here = directory / "distance"
        shutil.rmtree(here, ignore_errors=True)
        here.mkdir(parents=True)
        try:
            with place(here, MBIT_S, rtt_ms, loss_percent) as at:
                found = measure(at, rtt_ms, loss_percent, entries)
        except Unavailable as error:
            raise click.ClickException(
                f"there are no network namespaces here, so nothing is measured: {error}"
            ) from error
        finally:
            shutil.rmtree(here, ignore_errors=True)
        where = {"mbit_s": MBIT_S, "rtt_ms": rtt_ms, "loss_percent": loss_percent}
        row: dict[str, Any] = {**where, **found, "card": machine_card(directory)}
        print(json.dumps(row), flush=True)
        append(rows, row)


if __name__ == "__main__":
    main()
