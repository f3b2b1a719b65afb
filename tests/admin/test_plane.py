"""The admin port: it serves the embedded store, never shares its port, and stays closed with nothing to serve."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from admin.plane import AdminPlane, open_plane
from bookie.errors import StartRefused
from bookie.metadata.driver import open_driver
from bookie.server.control import discover

pytestmark = pytest.mark.leaks("gRPC keeps its own threads and their descriptors as long as the process lives")


def control(metadata: object, *, port: int = 0, garbage: object = None) -> Any:
    """What the plane asks of a bookie."""
    return SimpleNamespace(metadata=metadata, admin_host="127.0.0.1", admin_port=port, garbage=garbage)


def test_it_serves_the_store_until_it_stops(tmp_path: Path) -> None:
    """Another process reads what this one wrote; a stop is idempotent and frees the port."""
    owner = open_driver(f"lmdb://{tmp_path}/store")
    owner.start()
    instance = owner.cluster.initialize()
    plane = open_plane(control(owner))
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
