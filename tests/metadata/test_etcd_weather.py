"""Several faults of etcd's members at the same time, under clients whose answers are judged.

A member hangs while another one is restarted, what watchers have not seen is compacted meanwhile, and a session ends
while its creates, changes and marks are under way; one client knows only the member that hangs.
"""

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager

import grpc
import pytest

from bookie.metadata import open_driver
from bookie.metadata.driver import MetadataDriver
from bookie.metadata.etcd.driver import EtcdDriver
from bookie.metadata.etcd.endpoints import Endpoints, EtcdAccess
from bookie.pb import etcd_pb2 as pb
from tests.fixtures.etcd import EtcdCluster
from tests.metadata.weather import Clients, judge

pytestmark = pytest.mark.leaks("gRPC keeps threads of its own for the life of the process")

TIMEOUT_MS = 2000
LEDGERS = range(4)


@contextmanager
def started(uris: list[str]) -> Iterator[list[MetadataDriver]]:
    """Start a driver for each URI, and stop them in the end."""
    drivers = [open_driver(uri, session_timeout_ms=TIMEOUT_MS) for uri in uris]
    for driver in drivers:
        driver.start()
    try:
        yield drivers
    finally:
        for driver in drivers:
            driver.stop()


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(2))
def test_faults_together(three_etcds: EtcdCluster, seed: int) -> None:
    """Whatever is answered is true: no change is lost, done twice, or seen late; no id is given twice; marks stay."""
    everywhere = f"etcd://{three_etcds.addresses}/ledgers"
    alone = f"etcd://{three_etcds.members[0].address}/ledgers"
    with started([everywhere, everywhere, alone]) as drivers, ExitStack() as ended:
        drivers[0].cluster.initialize()
        clients = Clients(drivers, LEDGERS, threads=2, seed=seed)
        clients.start()
        ended.callback(clients.end)
        clients.wait("done", 50)
        for hung, restarted, other in ((0, 1, 2), (1, 2, 0), (0, 2, 1)):
            three_etcds.members[hung].freeze()
            three_etcds.members[restarted].fail()
            clients.wait("unknown", 2)
            three_etcds.members[restarted].recover()
            clients.wait("done", 50)
            _compact(three_etcds, other)
            for driver in drivers[1:]:
                _end_session(three_etcds, other, driver)
            clients.wait("done", 50)
            three_etcds.members[hung].thaw()
            clients.wait("done", 50)
        clients.end()
        assert not clients.errors
        clients.read_all(drivers[0])
        assert judge(clients.calls) == []
        assert len(set(clients.ids)) == len(clients.ids)
        for ledger, missing in clients.marked.items():
            mark = drivers[1].replication.marked(ledger)
            assert missing <= set(mark.missing if mark else ())


def _compact(etcd: EtcdCluster, member: int) -> None:
    with closing(Endpoints((etcd.members[member].address,), EtcdAccess())) as raw:
        now = raw.call("KV/Range", pb.RangeRequest(key=b"/ledgers"), 30).header.revision
        raw.call("KV/Compact", pb.CompactionRequest(revision=now), 30)


def _end_session(etcd: EtcdCluster, member: int, driver: MetadataDriver) -> None:
    assert isinstance(driver, EtcdDriver)
    with closing(Endpoints((etcd.members[member].address,), EtcdAccess())) as raw:
        try:
            raw.call("Lease/LeaseRevoke", pb.LeaseRevokeRequest(id=driver.store.session()), 30)
        except grpc.RpcError as error:
            if error.code() is not grpc.StatusCode.NOT_FOUND:  # it has ended already
                raise
