"""`python -m perf.soak`: a small cluster under mixed load for hours, and whether anything drifts.

Three bookies on this machine; a writer at a steady rate, whose ledgers live for a while and are then deleted in no
order; a reader at the tail, and one that reads older ledgers from the disk; collection and compaction all the time.
Each minute one of the clients is killed and started again. Memory, descriptors, threads and disk of the bookies and the
latencies of each minute are written as JSON lines, and two plots beside them.
"""

import json
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import click

from bookie.client import BookKeeper
from bookie.local import LocalBookie, LocalCluster
from perf.soak.clients import MINUTE_S, ROLES, ids
from perf.soak.report import figures, plot

SAMPLE_S = 10.0
SETTINGS: dict[str, Any] = {
    "gcWaitTime": "20000",
    "gcOverreplicatedLedgerWaitTime": "600000",
    "minorCompactionInterval": "60",
    "majorCompactionInterval": "120",
    "logSizeLimit": "67108864",
    "journalMaxSizeMB": "128",
    "flushInterval": "5000",
}


class Clients:
    """The processes of the clients, and the lines that they print."""

    def __init__(self, uri: str, ledgers: Path, rate: float) -> None:
        self.minutes: list[dict[str, Any]] = []
        self.failed: list[str] = []
        self._words = [uri, str(ledgers), str(rate)]
        self._running: dict[str, subprocess.Popen[str]] = {}

    def start(self, role: str) -> None:
        """Start a client."""
        command = [sys.executable, "-m", "perf.soak.clients", role, *self._words]
        self._running[role] = process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        threading.Thread(target=self._collect, args=(process,), daemon=True).start()

    def _collect(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdout
        self.minutes.extend(json.loads(line) for line in process.stdout)

    def restart(self, role: str) -> None:
        """Kill a client without notice, and start it again."""
        self._running[role].kill()
        self._running[role].wait()
        self.start(role)

    def check(self) -> None:
        """Note the clients that ended by themselves, and start them again."""
        for role, process in list(self._running.items()):
            if process.poll() is not None:
                self.failed.append(f"{role} ended with {process.returncode} at {time.ctime()}")
                self.start(role)

    def close(self) -> None:
        """Kill all clients."""
        for process in self._running.values():
            process.kill()
            process.wait()


def sample(bookie: LocalBookie, at: float) -> dict[str, Any]:
    """Return what a bookie takes now."""
    process = Path(f"/proc/{bookie.pid}")
    status = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines())
    disk = subprocess.run(["du", "-sk", bookie.directory], capture_output=True, text=True, check=False).stdout
    return {
        "at": round(at, 1),
        "bookie": bookie.name,
        "rss_mb": int(status["VmRSS"].split()[0]) / 1024,
        "anonymous_mb": int(status["RssAnon"].split()[0]) / 1024,
        "descriptors": len(list((process / "fd").iterdir())),
        "threads": int(status["Threads"]),
        "disk_mb": int(disk.split()[0]) / 1024,
    }


def delete_some(bookkeeper: BookKeeper, ledgers: Path, kept: int, deleted: set[int]) -> None:
    """Delete random ones of the older ledgers until `kept` are left, so that entry logs are half empty."""
    left = [one for one in ids(ledgers)[:-3] if one not in deleted]
    for one in random.sample(left, max(0, len(left) - kept)):
        bookkeeper.delete_ledger(one)
        deleted.add(one)


@contextmanager
def running(directory: Path, rate: float) -> Iterator[tuple[LocalCluster, Clients]]:
    """Run the cluster and its clients while the block runs."""
    with (
        LocalCluster(3, directory=directory / "bookies", port=0, metadata="embedded", **SETTINGS) as cluster,
        closing(Clients(cluster.uri, directory / "ledgers", rate)) as clients,
    ):
        for role in ROLES:
            clients.start(role)
        yield cluster, clients


@click.command(help=(__doc__ or "").partition("\n")[0])
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path))
@click.option("--hours", type=click.FloatRange(0.001, 1000), default=2.0, show_default=True, help="How long it runs.")
@click.option("--rate", type=click.FloatRange(1, 1e6), default=500.0, show_default=True, help="Adds per second, 1 KiB.")
@click.option("--kept", type=click.IntRange(1), default=30, show_default=True, help="Ledgers that are not deleted.")
def main(directory: Path, hours: float, rate: float, kept: int) -> None:
    """Run, and write DIRECTORY/soak.jsonl, memory.svg and latency.svg; print the figures. Exit with 1 on a drift."""
    directory.mkdir(parents=True, exist_ok=True)
    samples: list[dict[str, Any]] = []
    deleted: set[int] = set()
    begun, restarted = time.monotonic(), 0
    with running(directory, rate) as (cluster, clients), BookKeeper(cluster.uri) as bookkeeper:
        start = time.time()
        while (passed := time.monotonic() - begun) < hours * 3600:
            samples += [sample(bookie, passed) for bookie in cluster.bookies]
            delete_some(bookkeeper, directory / "ledgers", kept, deleted)
            clients.check()
            if passed // MINUTE_S > restarted:
                restarted += 1
                if restarted % 5 == 0:  # otherwise no client would live for a whole minute
                    clients.restart(ROLES[restarted // 5 % len(ROLES)])
            time.sleep(max(0.0, SAMPLE_S - (time.monotonic() - begun) % SAMPLE_S))
        minutes = [{**one, "at": one["at"] - start} for one in clients.minutes]
        failed = clients.failed
    found = {**figures(samples, minutes), "deleted": len(deleted), "restarts": restarted // 5, "failed": failed}
    with (directory / "soak.jsonl").open("w") as file:
        file.writelines(json.dumps(one) + "\n" for one in (found, *samples, *minutes))
    (directory / "memory.svg").write_text(plot(samples, minutes, "rss_mb"))
    (directory / "latency.svg").write_text(plot(samples, minutes, "p99_ms"))
    print(json.dumps(found, indent=1))
    sys.exit(0 if found["steady"] and not failed else 1)


if __name__ == "__main__":
    main()
