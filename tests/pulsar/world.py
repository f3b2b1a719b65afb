"""A Pulsar cluster on our bookies for the tests of a module, and what they do with topics.

Messages are numbers in words. They are sent and read by Pulsar's own client for Python, whose threads call back.
"""

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from bookie.client import BookKeeper
from bookie.errors import NoSuchLedgerMetadata
from tests.fixtures.bookies import BookieProcess
from tests.fixtures.java_peer import JavaPeer
from tests.fixtures.pulsar import PulsarBroker
from tests.fixtures.zookeeper import ZooKeeperServer

MARKS = [
    pytest.mark.interop,
    pytest.mark.pulsar,
    pytest.mark.slow,
    pytest.mark.leaks("Pulsar's client keeps its threads, and the client of the world connects when it needs to"),
]
WAIT_S = 60
RECEIVE_MS = 1000 * WAIT_S
# Settings that let topics roll their ledgers often, and a broker notice soon that another one is gone.
BROKER = {
    "managedLedgerMaxEntriesPerLedger": "200",
    "managedLedgerMinLedgerRolloverTimeMinutes": "0",
    "metadataStoreSessionTimeoutMillis": "6000",
}
BOOKIE = {"gcWaitTime": "500", "flushInterval": "200"}


def message(number: int) -> bytes:
    """Return the message of that number."""
    return b"message %d " % number + b"." * (number % 97)


def numbered(first: int, end: int) -> list[bytes]:
    """Return the messages of these numbers."""
    return [message(number) for number in range(first, end)]


def wait_for(condition: Callable[[], bool], what: str) -> None:
    """Ask until the answer is true, and raise AssertionError if that takes too long."""
    never = threading.Event()
    for _ in range(WAIT_S * 20):
        if condition():
            return
        never.wait(0.05)
    raise AssertionError(f"{what}: not within {WAIT_S} s")


class Sender:
    """Sends messages to a topic and knows which of them were acknowledged."""

    def __init__(self, client: Any, topic: str, *, batched: bool = False) -> None:
        self._producer = client.create_producer(
            topic,
            batching_enabled=batched,
            batching_max_messages=10,
            max_pending_messages=20_000,
            send_timeout_millis=0,  # it retries for as long as necessary
        )

    def send(self, numbers: Iterable[int]) -> list[Future[None]]:
        """Send all messages and return a future for each acknowledgement."""
        return [self._send(number) for number in numbers]

    def _send(self, number: int) -> "Future[None]":
        from pulsar import Result

        acknowledged: Future[None] = Future()

        def on_sent(result: Any, _: Any) -> None:
            if result == Result.Ok:
                acknowledged.set_result(None)
            else:
                acknowledged.set_exception(RuntimeError(str(result)))

        self._producer.send_async(message(number), on_sent)
        return acknowledged

    def deliver(self, numbers: Iterable[int]) -> None:
        """Send all messages and wait until each is acknowledged."""
        settle(self.send(numbers))

    def close(self) -> None:
        """Close the producer. No message may be under way."""
        self._producer.close()


def settle(acknowledgements: list["Future[None]"]) -> None:
    """Wait until all acknowledgements have come."""
    for one in acknowledgements:
        one.result(WAIT_S)


def deliver(client: Any, topic: str, numbers: Iterable[int], *, batched: bool = False) -> None:
    """Send messages to a topic by a producer of their own."""
    sender = Sender(client, topic, batched=batched)
    sender.deliver(numbers)
    sender.close()


def received(consumer: Any, count: int) -> list[Any]:
    """Return the next messages that a subscription has, in their order."""
    return [consumer.receive(RECEIVE_MS) for _ in range(count)]


def everything(client: Any, topic: str) -> list[bytes]:
    """Return all messages of a topic, from its first."""
    from pulsar import MessageId

    reader = client.create_reader(topic, MessageId.earliest)
    found = []
    while reader.has_message_available():
        found.append(reader.read_next(RECEIVE_MS).data())
    reader.close()
    return found


class Pulsar:
    """Four bookies, of which three run to begin with, two brokers, of which one does, and a client of the bookies."""

    def __init__(self, peer: JavaPeer, zookeeper: ZooKeeperServer, directory: Path, *, named: bool, v2: bool) -> None:
        root = zookeeper.new_root()
        self.uri = uri = f"zk+hierarchical://{zookeeper.address}{root}/ledgers"
        self.bookies = [BookieProcess(directory / f"bookie-{number}", uri, BOOKIE) for number in range(4)]
        settings = {**BROKER, "bookkeeperUseV2WireProtocol": str(v2).lower()}
        if named:
            settings["bookkeeperMetadataServiceUri"] = uri
        self.broker, self.second_broker = (
            PulsarBroker(peer, directory / name, f"zk:{zookeeper.address}{root}", settings)
            for name in ("broker", "second-broker")
        )
        self.client = BookKeeper(uri)

    def running(self) -> list[BookieProcess]:
        """The bookies that run."""
        return [bookie for bookie in self.bookies if bookie.process]

    def by_id(self, bookie_id: str) -> BookieProcess:
        """Return the bookie of that id."""
        return next(bookie for bookie in self.bookies if bookie.id == bookie_id)

    def ledgers(self, topic: str) -> list[int]:
        """Return the ledgers with messages of a topic, in their order, as the metadata store has them."""
        tenant, namespace, name = topic.split("/")
        own = f"{tenant}/{namespace}/persistent/{name}".encode()
        found = []
        for ledger in self.client.list_ledgers():
            with contextlib.suppress(NoSuchLedgerMetadata):  # deleted meanwhile
                custom = self.client.ledger_metadata(ledger).custom
                if custom.get("pulsar/managed-ledger") == own and "pulsar/cursor" not in custom:
                    found.append(ledger)
        return found

    def internal_stats(self, topic: str) -> Any:
        """Return what the broker reports of the ledgers and cursors of a topic."""
        return self.broker.admin("GET", f"persistent/{topic}/internalStats")


@contextmanager
def world_in(peer: JavaPeer, zookeeper: ZooKeeperServer, directory: Path, *, named: bool, v2: bool) -> Iterator[Pulsar]:
    """Run three bookies and a broker until the block ends, in a cluster that Pulsar's own command laid out.

    The broker is told where the ledgers are (`named`), or takes Pulsar's default place, which is the same.
    """
    made = Pulsar(peer, zookeeper, directory, named=named, v2=v2)
    try:
        made.broker.set_up_cluster()
        for bookie in made.bookies[:3]:
            bookie.start()
        made.broker.start()
        with made.client:
            yield made
    finally:
        made.second_broker.kill()
        made.broker.kill()
        for bookie in made.bookies:
            bookie.kill()
