"""The admin port serves the embedded store, never shares its port, and stays closed if there is nothing to serve."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from bookie.admin_port import own_token
from bookie.admin_port.channel import AdminAccess, open_channel
from bookie.errors import StartRefused
from bookie.metadata import open_driver
from bookie.pb import metrics_service_pb2_grpc
from bookie.pb.metrics_service_pb2 import GetMetricsRequest
from bookie.server.configuration.settings import AccessSettings, AdminSettings
from bookie.server.control import discover
from bookie_admin.plane import STRANGERS_STREAMS_MAX, STRANGERS_WAITING_MAX, STREAMS_MAX, AdminPlane, open_plane

pytestmark = pytest.mark.leaks("gRPC keeps its own threads and their descriptors as long as the process lives")


def control(metadata: object, *, port: int = 0, garbage: object = None, own_token: Path | None = None) -> Any:
    """What the plane needs of a bookie; everyone may do everything, unless it has a token of its own."""
    return SimpleNamespace(
        metadata=metadata,
        admin_host="127.0.0.1",
        admin_port=port,
        admin=AdminSettings(),
        garbage=garbage,
        access=AccessSettings(insecure_allowed=own_token is None),
        own_token=own_token,
        metrics=list,
    )


def test_it_serves_the_store_until_it_stops(tmp_path: Path) -> None:
    """Another process reads what this one wrote; stopping is idempotent and releases the port."""
    owner = open_driver(f"lmdb://{tmp_path}/store")
    owner.start()
    instance = owner.cluster.initialize()
    plane = open_plane(control(owner))
    assert plane is not None
    host, port = plane.start()
    remote = open_driver(f"grpc://{host}:{port}")
    remote.start()
    assert remote.cluster.instance_id() == instance
    remote.stop()
    plane.stop(1.0)
    plane.stop(1.0)
    again = AdminPlane(control(owner, port=port))
    assert again.start() == (host, port)
    again.stop(1.0)
    owner.stop()


def test_a_watcher_of_its_health_holds_up_no_stop() -> None:
    """A watcher is told that the bookie stops serving, and then the stream ends."""
    plane = AdminPlane(control(None))
    host, port = plane.start()
    with grpc.insecure_channel(f"{host}:{port}") as channel:
        watched = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest())
        assert next(watched).status == health_pb2.HealthCheckResponse.SERVING
        plane.stop(0.0)
        with contextlib.suppress(grpc.RpcError):  # the stop may arrive before that message
            assert next(watched).status == health_pb2.HealthCheckResponse.NOT_SERVING
            next(watched)


@contextlib.contextmanager
def guarded(tmp_path: Path) -> Iterator[tuple[grpc.Channel, grpc.Channel, Callable[[], None]]]:
    """A plane with a token and a metadata store, connections with and without the token, and a check of the store."""
    owner = open_driver(f"lmdb://{tmp_path}/store")
    owner.start()
    instance = owner.cluster.initialize()
    token = own_token.make(tmp_path)
    plane = AdminPlane(control(owner, own_token=token))
    host, port = plane.start()

    def check_store() -> None:
        remote = open_driver(f"grpc://{host}:{port}")
        remote.start()
        assert remote.cluster.instance_id() == instance
        remote.stop()

    target = f"{host}:{port}"
    with grpc.insecure_channel(target) as stranger, open_channel(target, AdminAccess(token_file=str(token))) as known:
        yield stranger, known, check_store
        plane.stop(0.0)
    owner.stop()


class Health:
    """A client of the health service, which needs no credentials."""

    def __init__(self, channel: grpc.Channel) -> None:
        self.stub = health_pb2_grpc.HealthStub(channel)

    def check(self) -> None:
        """Check once."""
        assert self.stub.Check(health_pb2.HealthCheckRequest()).status == health_pb2.HealthCheckResponse.SERVING

    def watch(self) -> Any:
        """Open a stream."""
        stream = self.stub.Watch(health_pb2.HealthCheckRequest())
        assert next(stream).status == health_pb2.HealthCheckResponse.SERVING
        return stream


def test_streams_of_strangers_leave_room(tmp_path: Path) -> None:
    """A stream beyond their limit is refused; operators, calls and the metadata store are not affected."""
    with guarded(tmp_path) as (stranger, known, check_store):
        watched = [Health(stranger).watch() for _ in range(STRANGERS_STREAMS_MAX)]
        with pytest.raises(grpc.RpcError, match=f"all {STRANGERS_STREAMS_MAX} streams") as refused:
            Health(stranger).watch()
        assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        Health(stranger).check()
        watched.append(Health(known).watch())
        check_store()
        for one in watched:
            one.cancel()


def test_streams_of_operators_leave_room(tmp_path: Path) -> None:
    """A stream beyond the limit is refused; unknown callers, calls and the metadata store are not affected."""
    with guarded(tmp_path) as (stranger, known, check_store):
        watched = [Health(known).watch() for _ in range(STREAMS_MAX)]
        with pytest.raises(grpc.RpcError, match=f"all {STREAMS_MAX} streams"):
            Health(known).watch()
        Health(known).check()
        watched.append(Health(stranger).watch())
        check_store()
        for one in watched:
            one.cancel()


def test_calls_of_strangers_leave_room(tmp_path: Path) -> None:
    """Thousands of waiting calls are refused or served; meanwhile every call of a known caller is served."""
    with guarded(tmp_path) as (stranger, known, check_store):
        stub = metrics_service_pb2_grpc.MetricsStub(stranger)  # type: ignore[no-untyped-call]  # generated
        asked = [stub.GetText.future(GetMetricsRequest()) for _ in range(4 * STRANGERS_WAITING_MAX)]
        for _ in range(50):
            Health(known).check()
        check_store()
        codes = {one.code() for one in asked}
    assert codes <= {grpc.StatusCode.OK, grpc.StatusCode.RESOURCE_EXHAUSTED}


def test_a_port_is_never_shared() -> None:
    """gRPC would let two processes share a port, each serving some calls; the second plane is refused by name."""
    first = AdminPlane(control(None))
    _, port = first.start()
    second = AdminPlane(control(None, port=port))
    with pytest.raises(StartRefused, match=f"adminPort={port}"):
        second.start()
    second.stop(0)
    first.stop(0)


def test_the_server_finds_it() -> None:
    """The server finds it by its entry point in the group `bookie.planes`."""
    assert dict(discover())["admin"] is open_plane
