"""Flushes on request while a ledger disk hangs: their callers are told, and keep no thread from others."""

import re
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest

from bookie.admin_port.channel import AdminAccess, open_channel
from bookie.pb import bookie_service_pb2 as pb
from bookie.pb.bookie_service_pb2_grpc import BookieStub
from tests.admin.bkadmin.conftest import BkAdmin
from tests.admin.http.conftest import Port
from tests.crash.planned import PlannedBookie
from tests.fixtures.ports import free_port
from tests.server.test_lifecycle import add

pytest.importorskip("bookie._fast.testing.faulty", reason="build with BOOKIE_FAULTS=1")
pytestmark = pytest.mark.leaks("gRPC keeps its own threads and their descriptors as long as the process lives")

CALL_S = 6.0
WAIT_S = 60.0
AT_A_TIME = 40
"""Less than the threads of the admin port, so that none is refused; twice as many are made."""


@pytest.fixture
def hung(tmp_path: Path) -> Iterator[PlannedBookie]:
    """A bookie with one add that cannot be flushed, since the first write to an entry log never returns."""
    settings = {
        "adminPort": str(free_port()),
        "flushInterval": "3600000",
        "httpServerEnabled": "true",
        "httpServerPort": str(free_port()),
        "httpServerRequestTimeoutMs": "5000",
        "httpServerThreads": "2",
    }
    bookie = PlannedBookie(tmp_path, settings, {"faults": True})
    bookie.control = True
    try:
        bookie.start()
        bookie.order(plan={"op": "pwritev", "action": "STALL", "suffix": ".log"})
        with socket.create_connection(bookie.address) as connection:
            assert add(connection, 1, 0, b"x") == 0
        yield bookie
    finally:
        bookie.kill()


def test_flushes_of_a_disk_that_hangs_keep_no_thread(hung: PlannedBookie) -> None:
    """More flushes than the port has threads are asked for, and each of their callers hears that it goes on."""
    with open_channel(hung.admin, AdminAccess()) as channel:
        stub = BookieStub(channel)  # type: ignore[no-untyped-call]
        for _ in range(2):
            asked = [stub.Flush.future(pb.FlushRequest(), timeout=CALL_S) for _ in range(AT_A_TIME)]
            said = [one.exception(WAIT_S) for one in asked]
            assert {one.code() for one in said} == {grpc.StatusCode.DEADLINE_EXCEEDED}
            assert any("goes on" in one.details() for one in said)
        assert stub.GetLastMarks(pb.GetLastMarksRequest(), timeout=WAIT_S).marks


def test_a_flush_by_command_says_that_it_goes_on(hung: PlannedBookie, bkadmin: BkAdmin) -> None:
    """The bookie has answered, so the command does not blame its own patience."""
    done = bkadmin("flush", "--admin", hung.admin, "--timeout", "3")
    assert done.code != 0, done
    assert re.search(r"the flush has not ended within [12]\.?\d* s and goes on", done.err), done


def test_flushes_over_http(hung: PlannedBookie) -> None:
    """More flushes than the port has threads hear it as well, and the threads serve others afterwards."""
    port = Port(hung.planes["http"])
    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(port.put, "/api/console/checkpoint") for _ in range(4)]
        said = [one.result() for one in asked]
    assert {one.status for one in said} == {504}
    assert sum("goes on" in one.text for one in said) >= 2
    assert port.get("/api/v1/bookie/state").status == 200
