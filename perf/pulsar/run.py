"""`python -m perf.pulsar.run`: a Pulsar broker on three of our bookies and on three of Apache BookKeeper's, in turn.

`make pulsar` fetches the broker. E = W = 3, A = 2, messages of 1 KiB, everything on this machine. For each number of
topics: as many messages as go in `--seconds` with 10,000 outstanding, read again from the first by a consumer that
comes when the broker's cache of 64 MB has the last ones only; and `--rate` messages a second, with a consumer at the
tail. Prints one JSON object for each, and then the tables. With `--record` each object is also appended to
results/pulsar.jsonl; `python -m perf.pulsar.table` prints the tables of the last such run again.
"""

import itertools
import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from perf.cpu import spent_by
from perf.pulsar.programs import Measured, start
from perf.pulsar.table import RESULTS, table
from perf.side_by_side.card import ROOT, append, machine_card, newest_run
from perf.three_bookies import KINDS, three_bookies
from tests.fixtures import pulsar
from tests.fixtures.java_peer import LASTING, JavaPeer, find_peer
from tests.fixtures.pulsar import PulsarBroker
from tests.fixtures.zookeeper import ZooKeeperServer

DATA = ROOT / "build/perf/pulsar"
SIZE = 1024
OUTSTANDING = 10_000
"""Of all topics. More than the load generator has memory for breaks its messages, and the broker refuses them."""
TAIL_S = 5
"""How much longer a consumer at the tail runs than the producer."""
SETTINGS = {
    "managedLedgerDefaultEnsembleSize": "3",
    "managedLedgerDefaultWriteQuorum": "3",
    "managedLedgerDefaultAckQuorum": "2",
    "managedLedgerCacheSizeMB": "64",
    "brokerDeleteInactiveTopicsEnabled": "false",
    "defaultRetentionTimeInMinutes": "-1",
    "defaultRetentionSizeInMB": "-1",
}


@contextmanager
def broker_on(kind: str, peer: JavaPeer, directory: Path) -> Iterator[tuple[PulsarBroker, list[int]]]:
    """Run ZooKeeper, three bookies and a broker; yield the broker and the ids of the bookies' processes."""
    zookeeper = ZooKeeperServer(peer, directory / "zookeeper")
    zookeeper.start()
    uri = f"zk+hierarchical://{zookeeper.address}/ledgers"
    broker = PulsarBroker(
        pulsar.find(), directory / "broker", f"zk:{zookeeper.address}",
        {**SETTINGS, "bookkeeperMetadataServiceUri": uri}, heap_mb=1024, direct_mb=1024, options=LASTING,
    )  # fmt: skip
    try:
        broker.set_up_cluster()
        with three_bookies(kind, peer, directory, uri) as bookies:
            broker.start()
            yield broker, bookies
            broker.stop()
    finally:
        broker.kill()
        zookeeper.kill()


class Measurement:
    """Loads on one broker, each on topics of its own. CPU times are in seconds for a million messages."""

    def __init__(self, kind: str, broker: PulsarBroker, bookies: list[int], directory: Path) -> None:
        self._kind, self._broker, self._bookies, self._directory = kind, broker, bookies, directory
        self._numbers = itertools.count(1)

    def warm_up(self, seconds: int) -> None:
        """Let the compilers of all Java processes work before anything is measured."""
        self.unthrottled(1, seconds)
        self.steady(1, 5000, seconds)

    def unthrottled(self, topics: int, seconds: int) -> dict[str, Any]:
        """Produce as fast as possible, then read everything again."""
        name = f"full-{next(self._numbers)}"
        produced, spent = self._run(
            ["produce", "-r", "10000000", "-o", str(max(1, OUTSTANDING // topics)), "-time", str(seconds),
             *self._topics(topics, name)]
        )  # fmt: skip
        consumed, spent_again = self._run(
            ["consume", "-sp", "Earliest", "-m", str(produced.messages), "-ss", "again", "-t", str(topics), name]
        )
        return {
            "load": "unthrottled", "bookies": self._kind, "topics": topics,
            "produced_s": produced.rate, "consumed_s": consumed.rate,
            "produce_cpu": spent, "consume_cpu": spent_again,
        }  # fmt: skip

    def steady(self, topics: int, rate: int, seconds: int) -> dict[str, Any]:
        """Produce at a rate, with a consumer that reads each message when it comes."""
        name = f"steady-{next(self._numbers)}"
        reading = ["consume", "-time", str(seconds + TAIL_S), "-ss", "tail", "-t", str(topics), name]
        writing = ["produce", "-r", str(rate), "-time", str(seconds), *self._topics(topics, name)]
        with start(self._broker, self._directory, reading) as tail:
            produced, spent = self._run(writing)
            consumed = tail.result()
        return {
            "load": "steady", "bookies": self._kind, "topics": topics, "rate": rate,
            "produced_s": produced.rate, "produce_p99_ms": produced.p99_ms, "tail_p99_ms": consumed.p99_ms,
            "cpu": spent,
        }  # fmt: skip

    def _topics(self, topics: int, name: str) -> list[str]:
        return ["-s", str(SIZE), "-t", str(topics), name]

    def _run(self, words: list[str]) -> tuple[Measured, dict[str, float]]:
        """Run a load, and return its result and the CPU time of bookies and broker for a million messages."""
        parts = {"bookies": self._bookies, "broker": [self._broker.process.pid]}
        before = {part: spent_by(pids) for part, pids in parts.items()}
        with start(self._broker, self._directory, words) as load:
            done = load.result()
        each = 1e6 / max(1, done.messages)
        return done, {part: round((spent_by(pids) - before[part]) * each, 2) for part, pids in parts.items()}


@click.command(help=__doc__)
@click.option("--pairs", default=3, show_default=True, help="Measurements of each kind of bookies.")
@click.option("--topics", default="1,10,100", show_default=True, help="Numbers of topics.")
@click.option("--rate", default=5000, show_default=True, help="Messages a second of the steady load.")
@click.option("--seconds", default=20, show_default=True, help="Of each load.")
@click.option("--record", is_flag=True, help="Append the results to perf/results/pulsar.jsonl.")
@click.option("--directory", default=DATA, show_default=True, type=click.Path(path_type=Path))
def main(pairs: int, topics: str, rate: int, seconds: int, directory: Path, *, record: bool) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    card = machine_card(directory)
    lines = []
    for pair in range(pairs):
        for kind in KINDS if pair % 2 == 0 else KINDS[::-1]:
            place = Path(tempfile.mkdtemp(dir=directory))
            with broker_on(kind, find_peer(), place) as (broker, bookies):
                measured = Measurement(kind, broker, bookies, place)
                measured.warm_up(seconds)
                for count in map(int, topics.split(",")):
                    for row in (measured.unthrottled(count, seconds), measured.steady(count, rate, seconds)):
                        found = {"pair": pair, **row, "card": card}
                        lines.append(json.dumps(found))
                        print(lines[-1], flush=True)
                        if record:
                            append(RESULTS, found)
            shutil.rmtree(place)
    print("\n".join(table(newest_run(lines))))


if __name__ == "__main__":
    main()
