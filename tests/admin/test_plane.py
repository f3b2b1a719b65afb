"""The admin port: it serves the embedded store, never shares its port, and stays closed with nothing to serve."""

import contextlib
import queue
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from admin.plane import OPEN_STREAMS_MAX, STREAMS_MAX, AdminPlane, open_plane
from bookie.errors import StartRefused
from bookie.metadata.driver import open_driver
from bookie.server.control import discover
from bookie.server.settings import AccessSettings, AdminSettings

pytestmark = pytest.mark.leaks("gRPC keeps its own threads and their descriptors as long as the process lives")


def control(metadata: object, *, port: int = 0, garbage: object = None) -> Any:
    """What the plane asks of a bookie."""
    return SimpleNamespace(
        metadata=metadata,
        admin_host="127.0.0.1",
        admin_port=port,
        admin=AdminSettings(),
        garbage=garbage,
        access=AccessSettings(insecure_allowed=True),
        own_token=None,
    )


def test_it_serves_the_store_until_it_stops(tmp_path: Path) -> None:
    """Another process reads what this one wrote; a stop is idempotent and frees the port."""
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
    """Who watches is told that it stops serving, and then that it is over."""
    plane = AdminPlane(control(None))
    host, port = plane.start()
    with grpc.insecure_channel(f"{host}:{port}") as channel:
        watched = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest())
        assert next(watched).status == health_pb2.HealthCheckResponse.SERVING
        plane.stop(0.0)
        with contextlib.suppress(grpc.RpcError):  # the stop may come before the word of it
            assert next(watched).status == health_pb2.HealthCheckResponse.NOT_SERVING
            next(watched)


@contextlib.contextmanager
def served(tmp_path: Path) -> Iterator[tuple[grpc.Channel, Callable[[], None]]]:
    """A plane with a metadata store: a connection to it, and a check that the store answers others."""
    owner = open_driver(f"lmdb://{tmp_path}/store")
    owner.start()
    instance = owner.cluster.initialize()
    plane = AdminPlane(control(owner))
    host, port = plane.start()

    def check_store() -> None:
        remote = open_driver(f"grpc://{host}:{port}")
        remote.start()
        assert remote.cluster.instance_id() == instance
        remote.stop()

    with grpc.insecure_channel(f"{host}:{port}") as channel:
        yield channel, check_store
        plane.stop(0.0)
    owner.stop()


class Health:
    """Asks anybody may ask, on one connection."""

    def __init__(self, channel: grpc.Channel) -> None:
        self.stub = health_pb2_grpc.HealthStub(channel)

    def check(self) -> None:
        """Once."""
        assert self.stub.Check(health_pb2.HealthCheckRequest()).status == health_pb2.HealthCheckResponse.SERVING

    def watch(self) -> Any:
        """A stream that has begun."""
        stream = self.stub.Watch(health_pb2.HealthCheckRequest())
        assert next(stream).status == health_pb2.HealthCheckResponse.SERVING
        return stream


def reflect(channel: grpc.Channel) -> tuple[Any, Any]:
    """A stream of an operator that has begun, and what ends it."""
    asked: queue.SimpleQueue[Any] = queue.SimpleQueue()
    asked.put(reflection_pb2.ServerReflectionRequest(list_services=""))
    stream = reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo(iter(asked.get, None))
    assert next(stream).list_services_response.service
    return stream, asked


def test_watchers_of_its_health_leave_room(tmp_path: Path) -> None:
    """Anybody may watch it: one more than may is refused, in words; operators, calls and the store do not notice."""
    with served(tmp_path) as (channel, check_store):
        health = Health(channel)
        watched = [health.watch() for _ in range(OPEN_STREAMS_MAX)]
        with pytest.raises(grpc.RpcError, match=f"all {OPEN_STREAMS_MAX} streams") as refused:
            health.watch()
        assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        health.check()
        _, asked = reflect(channel)
        check_store()
        asked.put(None)
        watched[0].cancel()


def test_streams_of_operators_leave_room(tmp_path: Path) -> None:
    """As many as there may be: one more is refused; who watches its health, calls and the store do not notice."""
    with served(tmp_path) as (channel, check_store):
        taken = [reflect(channel) for _ in range(STREAMS_MAX)]
        with pytest.raises(grpc.RpcError, match=f"all {STREAMS_MAX} streams"):
            reflect(channel)
        health = Health(channel)
        health.check()
        watched = health.watch()
        check_store()
        watched.cancel()
        for _, asked in taken:
            asked.put(None)


def test_a_port_is_never_shared() -> None:
    """gRPC would let two processes share a port, each answering some calls; the second plane is refused by name."""
    first = AdminPlane(control(None))
    _, port = first.start()
    second = AdminPlane(control(None, port=port))
    with pytest.raises(StartRefused, match=f"adminPort={port}"):
        second.start()
    second.stop(0)
    first.stop(0)


def test_the_server_finds_it() -> None:
    """By its entry point, under the group that the server looks into."""
    assert dict(discover())["admin"] is open_plane
