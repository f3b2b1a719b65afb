"""Test which requests are served next: a round of a loop is bounded, and each connection has its share of it.

The loops run in the test's own thread, round by round, so that the contents of their sockets are known.

Modules: server.turn, server.turns, server.intake, server.awaited, server.ack_queue, server.out_item.
"""

import contextlib
import select
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType

import pytest

from bookie._fast.server.io_loop import IoLoopRunner
from bookie._fast.server.limits import PortLimits
from bookie.server.configuration.loop_settings import LoopSettings
from bookie.server.tls.contexts import TlsContexts
from bookie.storage.ledger_storage import LedgerStorage
from bookie.storage.settings import MIB, JournalSettings, StorageSettings
from tests.fixtures.certificates import Authority
from tests.fixtures.faults import go_on
from tests.hostile import v3
from tests.hostile.local import JOURNAL, STOP_S, STORAGE
from tests.hostile.peer import Peer, add, batch, entry_of, read
from tests.hostile.tls_peer import TlsPeer, client_context, settings_of

PAYLOAD = bytes(range(250)) * 4
ENTRIES = 500
BACKLOG = 3000
ROUND_COST, ALONE_COST, TURN_COST, REQUEST_COST = 1 << 19, 1 << 21, 1 << 16, 512
ROUND_READS = ROUND_COST // (len(PAYLOAD) + REQUEST_COST)
TURN_READS = TURN_COST // (len(PAYLOAD) + REQUEST_COST)
ALONE_READS = ALONE_COST // (len(PAYLOAD) + REQUEST_COST)
ACKS_MOST = 4096
"""The limits in `turns` and `awaited`, and the numbers of reads of an entry that they allow."""


class Loops:
    """A bookie's loops without threads: one for unencrypted connections, and one for encrypted ones."""

    def __init__(self, storage: LedgerStorage, tls: TlsContexts) -> None:
        stores, pool = storage.stores, storage.pool
        assert stores is not None
        assert pool is not None
        settings = LoopSettings(
            output_high_bytes=64 * MIB, output_low_bytes=32 * MIB, output_bytes_max=1 << 30, descriptors_left=0,
            keepalive=False,
        )  # fmt: skip
        self.limits = PortLimits(settings.values(throttle_ms_max=10_000))
        self.clear = IoLoopRunner(stores, pool, self.limits)
        self.sealed = IoLoopRunner(stores, pool, self.limits, None, tls.server_context)
        self.clear.move_encrypted_to([self.sealed])
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=100)
        self.listener.setblocking(False)
        self.address = self.listener.getsockname()
        self.clear.listen(self.listener.fileno(), [self.clear])

    def rounds(self, times: int = 1) -> None:
        """Run this number of rounds of each loop."""
        for _ in range(times):
            self.clear.one_round()
            self.sealed.one_round()

    def until(self, reached: Callable[[], bool]) -> int:
        """Run rounds until `reached()`, and return their number."""
        for times in range(100_000):
            if reached():
                return times
            self.rounds()
        raise AssertionError("never")

    def stat(self, name: str) -> int:
        """Return a counter, summed over both loops."""
        return sum(int(loop.stats()[name]) for loop in (self.clear, self.sealed))

    def peer(self) -> Peer:
        """Open a connection, and let it be accepted."""
        peer = Peer(self.address)
        self.rounds(2)
        return peer


@pytest.fixture(scope="module")
def ca(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Return the authority that issues the bookie's certificate."""
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture
def loops(tmp_path: Path, ca: Authority, faulty: ModuleType) -> Iterator[Loops]:
    """Run loops with a ledger 1 in the write cache."""
    settings = StorageSettings(ledger_directories=(tmp_path / "ledgers",), **{**STORAGE, "write_cache_bytes": 64 * MIB})
    journal = JournalSettings(directories=(tmp_path / "journal",), **JOURNAL)
    storage = LedgerStorage(settings, journal, files=faulty.FaultyFiles())
    storage.open()
    storage.start()
    loops = Loops(storage, TlsContexts(settings_of(ca.issue("bookie", hosts=["127.0.0.1"]))))
    with loops.peer() as peer:
        peer.send(*(add(1, entry, PAYLOAD) for entry in range(ENTRIES)))
        loops.until(lambda: loops.stat("adds") == ENTRIES and loops.stat("adds_in_progress") == 0)
    yield loops
    go_on()
    for loop in (loops.clear, loops.sealed):
        loop.stop(True)
        loop.run()
    storage.stop()
    for loop in (loops.clear, loops.sealed):
        loop.close()
    loops.listener.close()


class Wire:
    """A protocol, as these tests use it."""

    def __init__(self, name: str, loops: Loops, ca: Authority) -> None:
        self.v3 = name == "v3"
        self.loops = loops
        self.context = client_context(ca) if name == "tls" else None

    def peer(self) -> Peer:
        """Open a connection."""
        if self.context is None:
            return self.loops.peer()
        with ThreadPoolExecutor(1) as aside:
            opening = aside.submit(TlsPeer, self.loops.address, self.context)
            self.loops.until(opening.done)
            return opening.result()

    def patient(self) -> Peer:
        """Open a connection and receive everything, since TLS sends more than the responses."""
        peer = self.peer()
        self.ask(peer, 1)
        self.loops.rounds(3)
        self.check(peer, 0)
        return peer

    def ask(self, peer: Peer, count: int) -> None:
        """Send this number of reads, which fit the socket buffers."""
        if self.v3:
            v3.send(peer, *(v3.read3(1, entry % ENTRIES) for entry in range(count)))
        else:
            peer.send(*(read(1, entry % ENTRIES) for entry in range(count)))

    def check(self, peer: Peer, entry: int) -> None:
        """Check that the next response has this entry."""
        body = v3.part(v3.answer(peer)).body if self.v3 else peer.answer().body
        assert body == entry_of(1, entry, PAYLOAD)


@pytest.fixture(params=["v2", "v3", "tls"])
def spoken(request: pytest.FixtureRequest, loops: Loops, ca: Authority) -> Wire:
    """Return each protocol in turn."""
    return Wire(request.param, loops, ca)


def has_come(peer: Peer) -> bool:
    """Return whether there is something to receive."""
    return bool(select.select([peer.sock], [], [], 0)[0])


def drained(peer: Peer) -> int:
    """Receive what has arrived, and return its size in bytes."""
    got = 0
    peer.sock.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while piece := peer.sock.recv(1 << 20):
            got += len(piece)
    return got


@pytest.mark.parametrize("flooders", [1, 8, 32])
def test_who_asks_for_one_entry_is_served_within_two_rounds(spoken: Wire, flooders: int) -> None:
    """A single read is served within two rounds, although other connections have thousands of reads in the sockets."""
    loops = spoken.loops
    most = 2 * (max(ROUND_READS + TURN_READS, ALONE_READS) + 2)
    with contextlib.ExitStack() as stack:
        flood = [stack.enter_context(spoken.peer()) for _ in range(flooders)]
        victim = stack.enter_context(spoken.patient())
        for one in flood:
            spoken.ask(one, BACKLOG)
        for entry in range(1 if flooders == 1 else 5):
            before = loops.stat("reads")
            spoken.ask(victim, 1)
            assert loops.until(lambda: has_come(victim)) <= 2
            assert loops.stat("reads") - before <= most
            spoken.check(victim, 0)
            assert loops.stat("reads") < BACKLOG * flooders, entry
        loops.until(lambda: loops.stat("reads") >= BACKLOG * flooders)
        spoken.check(flood[-1], 0)


def test_each_has_the_same_share_whatever_it_asks_for(loops: Loops) -> None:
    """Single reads, reads of missing entries and batches of 100 KiB get the same share: bytes and requests count."""
    asked = {
        "reads": [read(1, entry % ENTRIES) for entry in range(6 * BACKLOG)],
        "absent": [read(1, ENTRIES + entry) for entry in range(6 * BACKLOG)],
        "batches": [batch(1, 0, count=100) for _ in range(BACKLOG)],
    }
    sizes = {"reads": 24 + 24 + len(PAYLOAD) + 32, "absent": 24 + 24, "batches": 100 * len(PAYLOAD)}
    with contextlib.ExitStack() as stack:
        peers = {name: stack.enter_context(loops.peer()) for name in asked}
        writers = stack.enter_context(ThreadPoolExecutor(len(peers)))
        writing = [writers.submit(peers[name].send, *requests) for name, requests in asked.items()]
        assert all(one.exception(STOP_S) is None for one in writing)
        got = dict.fromkeys(asked, 0)
        for _ in range(30):
            loops.rounds()
            for name, peer in peers.items():
                got[name] += drained(peer)
        answers = {"reads": got["reads"] / (24 + 32 + len(PAYLOAD)), "absent": got["absent"] / 24}
        answers["batches"] = got["batches"] / sizes["batches"]
        spent = {name: count * (REQUEST_COST + sizes[name]) for name, count in answers.items()}
        assert max(spent.values()) < 1.3 * min(spent.values()), "some of it was not sent yet"


def test_who_is_alone_loses_nothing(loops: Loops) -> None:
    """A thousand reads of the only connection are served in one round."""
    with loops.peer() as peer:
        peer.send(*(read(1, entry % ENTRIES) for entry in range(1000)))
        loops.rounds()
        assert loops.stat("reads") == 1000
        assert peer.answer().body == entry_of(1, 0, PAYLOAD)


@pytest.mark.thorough
def test_peers_that_are_gone_before_their_turn(spoken: Wire) -> None:
    """Connections that wait for their turn and are closed, in every way, are forgotten, and others are served."""
    loops = spoken.loops
    with contextlib.ExitStack() as stack:
        flood = [stack.enter_context(spoken.peer()) for _ in range(30)]
        victim = stack.enter_context(spoken.patient())
        for one in flood:
            spoken.ask(one, BACKLOG)
        loops.rounds(2)
        for at, one in enumerate(flood):
            if at % 3 == 0:
                one.abort()
            elif at % 3 == 1:
                one.close()
        spoken.ask(victim, 1)
        assert loops.until(lambda: has_come(victim)) <= 2
        spoken.check(victim, 0)
        loops.until(lambda: loops.limits.stats()["connections"] == 11)
    loops.until(lambda: loops.limits.stats()["connections"] == 0)
    assert loops.limits.stats()["input_buffer_bytes"] == 0


def test_a_loop_that_stops_while_many_wait(loops: Loops) -> None:
    """A loop that stops answers what it has received while peers read, receives no more requests, and ends."""
    with contextlib.ExitStack() as stack:
        peers = [stack.enter_context(loops.peer()) for _ in range(4)]
        for peer in peers:
            peer.send(*(read(1, entry % ENTRIES) for entry in range(BACKLOG)))
        loops.rounds(2)
        assert 0 < loops.stat("reads") < 4 * BACKLOG
        loops.clear.stop(False)
        with ThreadPoolExecutor(1) as aside:
            ending = aside.submit(loops.clear.run)
            while not ending.done():
                for peer in peers:
                    # what it did not receive is lost when the socket is closed
                    with contextlib.suppress(ConnectionResetError):
                        drained(peer)
            ending.result()
        assert loops.stat("reads") < 4 * BACKLOG


def test_acknowledgements_come_in_shares(loops: Loops, faulty: ModuleType) -> None:
    """When a slow journal makes thousands of adds durable at once, each round acknowledges only some of them."""
    adds = 9000
    with loops.peer() as peer:
        stall = faulty.plan("fdatasync", "STALL", suffix=".txn")
        peer.send(*(add(2, entry) for entry in range(adds)))
        loops.until(lambda: loops.stat("adds") == ENTRIES + adds)
        assert faulty.wait_hit(stall, STOP_S)
        under_way = loops.stat("adds_in_progress")  # all of them, unless the sync of the next file stalls
        faulty.release()
        while under_way:
            loops.rounds()
            left = loops.stat("adds_in_progress")
            assert under_way - left <= 2 * ACKS_MOST, "of those who had nothing to do, then of those who are busy"
            under_way = left
        assert [peer.answer().code for _ in range(adds)] == [0] * adds


def test_a_stop_listens_no_more(loops: Loops) -> None:
    """A connection that comes while a loop ends, and that nobody will accept, does not wake it again and again."""
    registered = f"tfd:{loops.listener.fileno():>9} "
    assert any(registered in path.read_text() for path in polled())
    loops.clear.stop(False)
    with socket.create_connection(loops.address):
        loops.rounds(3)
        assert not any(registered in path.read_text() for path in polled())


def polled() -> list[Path]:
    """Return the files of the kernel that tell what the process polls."""
    found = []
    for path in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            if "eventpoll" in str(path.readlink()):
                found.append(Path("/proc/self/fdinfo") / path.name)
    return found
