"""A channel to an admin port that is closed while other threads still call."""

import subprocess
import sys

import pytest

from bookie.admin_port.channel import AdminAccess, open_channel
from bookie.pb import metadata_service_pb2 as pb
from bookie.pb.metadata_service_pb2_grpc import MetadataStoreStub
from tests.fixtures.bookies import ROOT

CALLS_ON_A_CLOSED_CHANNEL = """
from bookie.admin_port.channel import AdminAccess, open_channel
from bookie.pb import metadata_service_pb2 as store
from bookie.pb.metadata_service_pb2_grpc import MetadataStoreStub

channel = open_channel("127.0.0.1:1", AdminAccess())
stub = MetadataStoreStub(channel)
channel.close()
for method, request in ((stub.Get, store.GetRequest()), (stub.Watch, store.WatchRequest())):
    try:
        answer = method(request)
        next(answer)  # a stream says it at its first element
    except ValueError as error:
        print(error)  # which differs between the two
"""


def test_a_channel_ends_with_its_block() -> None:
    """Also one whose caller is known by a certificate, and sends no token."""
    for access in (AdminAccess(), AdminAccess(certificate="not read without TLS")):
        with open_channel("127.0.0.1:1", access) as channel:
            stub = MetadataStoreStub(channel)  # type: ignore[no-untyped-call]
        with pytest.raises(ValueError, match="closed channel"):
            stub.Get(pb.GetRequest())


def test_calls_on_a_closed_channel_fail() -> None:
    """They raise an error, whether one response is expected or a stream, and do not end the process (gRPC 43455)."""
    command = [sys.executable, "-c", CALLS_ON_A_CLOSED_CHANNEL]
    done = subprocess.run(command, check=False, cwd=ROOT, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 2, done.stdout
