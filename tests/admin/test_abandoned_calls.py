"""Calls that their callers have given up: they end soon, and neither hold a thread nor delay a stop of the bookie."""

import time
from collections.abc import Callable

import grpc
import pytest

from bookie.admin_port.channel import AdminAccess, open_channel
from bookie.pb import bookie_service_pb2 as pb
from bookie.pb import metadata_service_pb2 as metadata_pb
from bookie.pb.bookie_service_pb2_grpc import BookieStub
from bookie.pb.metadata_service_pb2_grpc import MetadataStoreStub
from bookie_admin.services.running import WRITE_CLOSES_MAX
from tests.fixtures.bookies import BookieProcess

pytestmark = pytest.mark.leaks("gRPC keeps its own threads and their descriptors as long as the process lives")

Bookies = Callable[..., list[BookieProcess]]
WAIT_S = 60.0


def test_a_long_list_of_ledgers_that_nobody_waits_for(bookies: Bookies) -> None:
    """A call that names many ledgers stops at one of them when its deadline has passed, and the audit log says so.
    The bookie asks the metadata store of another process about each of them.
    """
    _, bookie = bookies(2)
    with open_channel(bookie.admin, AdminAccess()) as channel:
        many = pb.WriteCloseLedgersRequest(ledgers=range(WRITE_CLOSES_MAX))
        with pytest.raises(grpc.RpcError, match="DEADLINE_EXCEEDED"):
            BookieStub(channel).WriteClose(many, timeout=0.3)  # type: ignore[no-untyped-call]
    deadline = time.monotonic() + WAIT_S
    while "action=Bookie/WriteClose" not in bookie.log_text():
        assert time.monotonic() < deadline
    line = next(one for one in bookie.log_text().splitlines() if "action=Bookie/WriteClose" in one)
    assert 'outcome="failed: IllegalOperation"' in line
    assert bookie.stop() == 0


def test_a_key_that_is_no_counter_is_refused_in_words(bookies: Bookies) -> None:
    """A caller that increments another key is told so, and the log has no traceback."""
    (bookie,) = bookies(1)
    with open_channel(bookie.admin, AdminAccess()) as channel:
        stub = MetadataStoreStub(channel)  # type: ignore[no-untyped-call]
        stub.Put(metadata_pb.PutRequest(key="text", value=b"abc"), timeout=WAIT_S)
        with pytest.raises(grpc.RpcError) as refused:
            stub.Increment(metadata_pb.IncrementRequest(key="text"), timeout=WAIT_S)
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "key 'text' is not a counter" in refused.value.details()
    assert "Traceback" not in bookie.log_text()
