"""A ZooKeeper server that lags behind its leader answers with old metadata, unless the latest ones are requested."""

import contextlib
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from bookie.errors import NoSuchLedgerMetadata
from bookie.metadata import open_driver
from bookie.metadata.records.ledger_metadata import LedgerMetadata, LedgerState, Segment
from tests.fixtures.java_peer import JavaPeer
from tests.fixtures.ports import free_port
from tests.fixtures.zookeeper import ZooKeeperServer

pytestmark = [pytest.mark.interop, pytest.mark.thorough]

METADATA = LedgerMetadata(ensemble_size=1, write_quorum=1, ack_quorum=1, segments=(Segment(0, ("a:3181",)),))
LEADER, FOLLOWER, LAGGING = 2, 1, 3
NEXT, NEW = 8, 9


class HeldLink:
    """A link to a port that can hold back what the other end sends, without losing anything of it."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.flows = threading.Event()
        self.flows.set()
        self._sockets = [self._listener]
        threading.Thread(target=self._accept, daemon=True).start()

    def stop(self) -> None:
        """Close everything, which ends the threads."""
        self.flows.set()
        for one in self._sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                here, _ = self._listener.accept()
                there = socket.create_connection(("127.0.0.1", self._target))
                self._sockets += [here, there]
                threading.Thread(target=self._carry, args=(here, there, threading.Event()), daemon=True).start()
                threading.Thread(target=self._carry, args=(there, here, self.flows), daemon=True).start()

    def _carry(self, source: socket.socket, target: socket.socket, flows: threading.Event) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                if flows is self.flows:
                    flows.wait()
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)


@pytest.fixture
def link_and_servers(java_peer: JavaPeer, tmp_path: Path) -> Iterator[tuple[HeldLink, dict[int, ZooKeeperServer]]]:
    """Three servers; one of them learns of changes only through the link."""
    quorum, election = ({number: free_port() for number in (1, 2, 3)} for _ in range(2))
    link = HeldLink(quorum[LEADER])
    servers = {}
    for number in quorum:
        seen = {**quorum, LEADER: link.port} if number == LAGGING else quorum
        lines = [f"server.{one}=127.0.0.1:{seen[one]}:{election[one]}" for one in quorum]
        servers[number] = ZooKeeperServer(java_peer, tmp_path / str(number), ensemble=(number, lines))
    with ThreadPoolExecutor(2) as pool:  # neither serves before both run, and the higher number is elected
        for started in [pool.submit(servers[number].start) for number in (FOLLOWER, LEADER)]:
            started.result()
    servers[LAGGING].start()
    yield link, servers
    link.stop()
    for server in servers.values():
        server.kill()


def test_the_latest_metadata_are_those_of_the_leader(
    link_and_servers: tuple[HeldLink, dict[int, ZooKeeperServer]],
) -> None:
    """The server that lags says that a fenced ledger is open, and that a new one does not exist."""
    link, servers = link_and_servers
    fresh, behind = (open_driver(f"zk://{servers[n].address}/ledgers") for n in (FOLLOWER, LAGGING))
    fresh.start()
    fresh.cluster.initialize()
    behind.start()
    created = fresh.ledgers.create(NEXT, METADATA)
    assert behind.ledgers.read(NEXT, latest=True).value.state is LedgerState.OPEN
    link.flows.clear()
    fresh.ledgers.write(NEXT, replace(METADATA, state=LedgerState.IN_RECOVERY), created.version)
    fresh.ledgers.create(NEW, METADATA)
    assert behind.ledgers.read(NEXT).value.state is LedgerState.OPEN
    with pytest.raises(NoSuchLedgerMetadata):
        behind.ledgers.read(NEW)
    with ThreadPoolExecutor(2) as pool:
        asked = [pool.submit(behind.ledgers.read, ledger, latest=True) for ledger in (NEXT, NEW)]
        link.flows.set()
        assert asked[0].result().value.state is LedgerState.IN_RECOVERY
        assert asked[1].result().value.state is LedgerState.OPEN
    for driver in (fresh, behind):
        driver.stop()
