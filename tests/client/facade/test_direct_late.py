"""Direct connections that take longer to establish than a call may wait, as through TLS beside much other work."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bookie.client import BookKeeper
from bookie.client.direct.connect import Endpoint
from bookie.client.direct.pool import DirectPool
from tests.client.facade import direct_adds as adds
from tests.client.facade.test_direct import PAYLOADS, contents, only_direct, warm, written
from tests.client.facade.test_direct_peers import dropped, pool_of
from tests.client.facade.test_direct_tls import settings_of
from tests.fixtures.bookies import BookieProcess, metadata_of
from tests.fixtures.certificates import Authority
from tests.fixtures.lossy_proxy import LossyProxy
from tests.server.test_tls import keys_of

Bookies = Callable[..., list[BookieProcess]]


class Gate(LossyProxy):
    """A proxy that accepts connections, but carries nothing until it is opened."""

    def __init__(self, port: int) -> None:
        self.opened = threading.Event()
        self.entered = 0
        super().__init__(port)

    def _carry(self, client: socket.socket, server: socket.socket) -> None:
        self.entered += 1
        self.opened.wait()
        super()._carry(client, server)


@contextmanager
def gated(pool: DirectPool, one: BookieProcess) -> Iterator[Gate]:
    """Lead direct connections through a gate, which is closed."""
    gate = Gate(one.port)
    try:
        assert pool.endpoint is not None
        pool.endpoint = Endpoint(pool.endpoint.host, ("127.0.0.1", gate.port))
        dropped(pool)
        yield gate
    finally:
        gate.opened.set()
        gate.stop()


def test_adds_while_a_connection_is_late(bookies: Bookies, tmp_path: Path) -> None:
    """The event loop adds meanwhile, one connection is attempted, and once it is there, entries are added over it."""
    ca = Authority(tmp_path / "ca")
    (one,) = bookies(1, **keys_of(ca, tlsRequired="true"))
    with BookKeeper(metadata_of([one]), **settings_of(ca)) as bk, adds.created(bk) as ledger:
        first = adds.warm(ledger)
        with gated(pool_of(bk), one) as gate:
            for entry in range(first, first + 20):
                assert ledger.append(adds.payload(entry)) == entry
            adds.wait_until(lambda: gate.entered)
            assert gate.entered == 1
            assert not pool_of(bk)._links
            gate.opened.set()
            adds.wait_until(lambda: pool_of(bk)._idle)
            count = adds.warm(ledger, first + 20)
            assert len(pool_of(bk)._links) == 1
            ledger.close()
        adds.check(bk, ledger.id, count)


def test_reads_while_a_connection_is_late(bookies: Bookies, tmp_path: Path) -> None:
    """A read waits for a quarter of its time limit, the next ones not at all, and later ones use the connection."""
    ca = Authority(tmp_path / "ca")
    (one,) = bookies(1, **keys_of(ca, tlsRequired="true"))
    uri, settings = metadata_of([one]), settings_of(ca)
    ledger = written(uri, **settings)
    with BookKeeper(uri, **settings) as bk, bk.open_ledger(ledger) as reader:
        warm(reader)
        pool = pool_of(bk)
        with gated(pool, one) as gate:
            for entry in (5, 6, 7):
                assert contents(reader.read(entry, timeout=4.0)) == [(entry, PAYLOADS[entry])]
            adds.wait_until(lambda: gate.entered)
            assert gate.entered == 1
            gate.opened.set()
            adds.wait_until(lambda: pool._idle)
            with only_direct(reader):
                assert contents(reader.read(8)) == [(8, PAYLOADS[8])]


def test_a_client_that_is_closed_meanwhile(bookies: Bookies, tmp_path: Path) -> None:
    """A connection that is established after the client was closed is closed at once."""
    ca = Authority(tmp_path / "ca")
    (one,) = bookies(1, **keys_of(ca, tlsRequired="true"))
    with BookKeeper(metadata_of([one]), **settings_of(ca)) as bk:
        ledger = adds.created(bk)
        adds.warm(ledger)
        pool = pool_of(bk)
        ledger._direct_adds._step_s = 0.01
        with gated(pool, one) as gate:
            ledger.append(b"by the event loop")
            adds.wait_until(lambda: gate.entered)
            bk.close()
            gate.opened.set()
            adds.wait_until(lambda: not pool._connecting)
            assert not pool._idle
            assert not pool._links
