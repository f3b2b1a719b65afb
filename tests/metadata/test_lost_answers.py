"""If the answer to an executed request is lost with the connection, the repeated request recognises its own work."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from bookie.errors import LedgerExists, NoSuchLedgerMetadata
from bookie.metadata import open_driver
from bookie.metadata.driver import MetadataDriver
from bookie.metadata.records.ledger_metadata import LedgerMetadata, LedgerState, Segment
from tests.fixtures.lossy_proxy import LossyProxy, lossy_proxy
from tests.metadata.conftest import EtcdScope, KeyValueCluster, ZooKeeperCluster

pytestmark = pytest.mark.leaks("gRPC keeps threads of its own for the life of the process")

METADATA = LedgerMetadata(ensemble_size=1, write_quorum=1, ack_quorum=1, segments=(Segment(0, ("a:3181",)),))
LEDGER = 123_456_789
BOOKIE = "lost-answers:3181"


@dataclass
class Lossy:
    """`driver` goes through `proxy`, `straight` does not; `name` is the form of ledger LEDGER in requests, and `ids`
    the counter of ids.
    """

    driver: MetadataDriver
    straight: MetadataDriver
    proxy: LossyProxy
    name: bytes
    ids: bytes

    def lose(self, marker: bytes, carried_out: Callable[[], bool]) -> None:
        """Lose the answer to the next request that contains `marker`."""
        self.proxy.lose_answer_to(marker, carried_out)


@pytest.fixture(params=["remote", "etcd", pytest.param("zookeeper", marks=pytest.mark.interop)])
def lossy(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lossy]:
    """A cluster behind a proxy."""
    with ExitStack() as undo:
        made: KeyValueCluster | ZooKeeperCluster | EtcdScope
        if request.param == "zookeeper":
            made = ZooKeeperCluster(request.getfixturevalue("zookeeper"))
            port, uri = made.server.port, f"zk://127.0.0.1:{{port}}{made.root}"
            name, ids = b"/01/2345/L6789", b"idgen/ID-"
        elif request.param == "etcd":
            etcd = request.getfixturevalue("etcd")
            made = EtcdScope(etcd)
            port, uri = etcd.members[0].port, f"etcd://127.0.0.1:{{port}}{made.scope}"
            name, ids = b"ledgers/00000000-0000-0000-0000-0000075bcd15", b"buckets/000"
        else:
            made = KeyValueCluster(tmp_path / "metadata", owner_first=False)
            port, uri = made.served.port, "grpc://127.0.0.1:{port}"
            name, ids = b"ledgers/0000000000123456789", b"next-ledger-id"
        undo.callback(made.stop)
        proxy = undo.enter_context(lossy_proxy(port))
        driver = open_driver(uri.format(port=proxy.port))
        undo.callback(driver.stop)
        driver.start()
        straight = made.connect()
        straight.ledgers.create(LEDGER + 1, METADATA)  # so that the parents exist and one request suffices
        straight.cookies.write("another:3181", b"", None)
        yield Lossy(driver, straight, proxy, name, ids)
        assert proxy.losses == 1


def version_of(driver: MetadataDriver) -> int | None:
    """Return the version of LEDGER, or None if it does not exist."""
    try:
        return driver.ledgers.read(LEDGER).version
    except NoSuchLedgerMetadata:
        return None


def test_a_create_knows_its_own_ledger(lossy: Lossy) -> None:
    """The repeated create is refused, reads the ledger, finds its own token in it and succeeds."""
    lossy.lose(lossy.name, lambda: version_of(lossy.straight) is not None)
    created = lossy.driver.ledgers.create(LEDGER, METADATA)
    assert created == lossy.straight.ledgers.read(LEDGER)


def test_a_create_does_not_take_another_ones_ledger(lossy: Lossy) -> None:
    """If the ledger existed before, LedgerExists is raised, even if all but the token is equal."""
    lossy.straight.ledgers.create(LEDGER, METADATA)
    lossy.lose(lossy.name, lambda: True)
    with pytest.raises(LedgerExists):
        lossy.driver.ledgers.create(LEDGER, METADATA)


def test_a_conditional_write_knows_its_own_bytes(lossy: Lossy) -> None:
    """The repeated write finds the next version with its own bytes, and succeeds once."""
    before = lossy.straight.ledgers.create(LEDGER, METADATA).version
    closed = replace(METADATA, state=LedgerState.CLOSED, last_entry=9, length=100)
    after: list[int | None] = []

    def carried_out() -> bool:
        after.append(version_of(lossy.straight))
        return after[-1] != before

    lossy.lose(lossy.name, carried_out)
    written = lossy.driver.ledgers.write(LEDGER, closed, before)
    assert written == lossy.straight.ledgers.read(LEDGER)
    assert written.version == after[-1]


def test_a_delete_knows_that_it_was_done(lossy: Lossy) -> None:
    """The repeated delete finds nothing, and counts that as its own work."""
    version = lossy.straight.ledgers.create(LEDGER, METADATA).version
    lossy.lose(lossy.name, lambda: version_of(lossy.straight) is None)
    lossy.driver.ledgers.delete(LEDGER, version)
    assert version_of(lossy.straight) is None


def test_a_cookie_is_written_once(lossy: Lossy) -> None:
    """B16: the repeated create finds its own text."""
    lossy.lose(b"the text", lambda: lossy.straight.cookies.read(BOOKIE) is not None)
    version = lossy.driver.cookies.write(BOOKIE, b"the text", None)
    assert lossy.straight.cookies.read(BOOKIE) == (b"the text", version)


def test_a_registration_knows_its_own_node(lossy: Lossy) -> None:
    """B20: the repeated registration finds the node of its own session, and does not wait for its end."""
    lossy.lose(b"the info", lambda: BOOKIE in lossy.straight.bookies.present(read_only=False))
    lossy.driver.registrations.register(BOOKIE, b"the info", read_only=False)
    assert lossy.driver.registrations.is_registered(BOOKIE, read_only=False)


def test_an_id_is_never_given_twice(lossy: Lossy) -> None:
    """A lost id is wasted; the next one is another."""
    taken = [lossy.straight.ledgers.new_id()]
    looks = itertools.count()
    lossy.lose(lossy.ids, lambda: next(looks) > 5)
    taken += [lossy.driver.ledgers.new_id() for _ in range(3)]
    taken.append(lossy.straight.ledgers.new_id())
    assert len(set(taken)) == len(taken)
