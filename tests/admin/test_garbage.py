"""Garbage collection through the admin port of a real bookie: status, suspension, a forced cycle."""

from collections.abc import Callable

import grpc
import pytest

from bookie.admin_port.channel import AdminAccess, open_channel
from bookie.pb import garbage_service_pb2 as pb
from bookie.pb.garbage_service_pb2_grpc import GarbageCollectionStub
from tests.fixtures.bookies import BookieProcess

pytestmark = pytest.mark.leaks("gRPC keeps its own threads and their descriptors as long as the process lives")

CALL_S = 60.0


def test_an_operator_looks_and_orders(bookies: Callable[..., list[BookieProcess]]) -> None:
    """Requests show in the status; a suspended compaction is not forced; naming no kind is refused."""
    (bookie,) = bookies(gcWaitTime="3600000", minorCompactionInterval="0", majorCompactionInterval="0")
    with open_channel(bookie.admin, AdminAccess()) as channel:
        gc = GarbageCollectionStub(channel)  # type: ignore[no-untyped-call]  # generated
        status = gc.GetStatus(pb.GetGarbageStatusRequest(), timeout=CALL_S)
        assert (status.running, status.alarm, list(status.disks)) == (False, "", ["ok"])
        assert status.progress.log_id == -1
        assert gc.Suspend(pb.CompactionKinds(major=True), timeout=CALL_S).major_suspended
        assert not gc.Resume(pb.CompactionKinds(major=True, minor=True), timeout=CALL_S).major_suspended
        with pytest.raises(grpc.RpcError, match="no kind of compaction"):
            gc.Suspend(pb.CompactionKinds(), timeout=CALL_S)
        gc.Force(pb.ForceGarbageRequest(major=True, minor=True), timeout=CALL_S)
        while not gc.GetStatus(pb.GetGarbageStatusRequest(), timeout=CALL_S).counters["gc_cycles_total"]:
            pass
    assert bookie.stop() == 0
