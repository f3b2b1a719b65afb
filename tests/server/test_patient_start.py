"""A start that waits for its metadata store: only probes are served, nothing stays behind, and it goes on by itself."""

import http.client
import os
import signal
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fixtures.bookies import BookieProcess
from tests.fixtures.ports import free_port
from tests.server.test_refusals import snapshot

Bookies = Callable[..., list[BookieProcess]]
WAITS = "the metadata store is out of reach; the start waits for it"


def launched(bookie: BookieProcess, tmp_path: Path) -> tuple[int, list[str]]:
    """Start a bookie whose store is away, and return the descriptor that reports that it serves, and what it told
    systemd until it waited.
    """
    told: list[str] = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(tmp_path / "notify"))
        systemd.settimeout(60)
        bookie.environment["NOTIFY_SOCKET"] = str(tmp_path / "notify")
        ready = bookie.launch()
        while not told or not told[-1].startswith("STATUS=waiting for the metadata store"):
            told.append(systemd.recv(1000).decode())
    return ready, told


def asked(port: int, path: str) -> tuple[int, str]:
    """Send a GET request to an HTTP port, and return the status and the text of the answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def test_probes_while_it_waits(new_bookies: Bookies, tmp_path: Path) -> None:
    """The HTTP port says that the bookie lives, what it waits for, and refuses the rest; no file is written."""
    owner, other = new_bookies(2, zkTimeout="1000")
    other.settings |= {"httpServerEnabled": "true", "httpServerPort": str(free_port())}
    port = int(other.settings["httpServerPort"])
    ready, _ = launched(other, tmp_path)
    assert asked(port, "/livez") == (200, "alive: starting\n")
    assert asked(port, "/healthz") == (200, "ok: starting\n")
    waits = "the bookie is starting, and waits for its metadata store"
    assert asked(port, "/readyz") == (503, f"not ready: {waits}\n")
    assert asked(port, "/api/v1/bookie/is_ready")[0] == 503
    for path in ("/metrics", "/", "/api/v1/bookie/list_bookies"):
        assert asked(port, path) == (503, f"{waits}; until it serves, only probes are answered")
    assert set(snapshot(other).values()) == {"directory"}
    owner.start()
    other.ready(ready)
    assert asked(port, "/readyz") == (200, "ready: writable\n")
    assert asked(port, "/metrics")[0] == 200
    assert other.stop() == 0


def test_a_store_that_comes_later(new_bookies: Bookies, tmp_path: Path) -> None:
    """Until then the data port is closed and systemd does not take it for ready; then it serves."""
    owner, other = new_bookies(2, zkTimeout="1000")
    ready, told = launched(other, tmp_path)
    assert WAITS in other.log_text()
    assert not [line for line in told if "READY" in line]
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(other.address)
    owner.start()
    other.ready(ready)
    assert other.log_text().count(WAITS) == 1
    assert "the metadata store answers" in other.log_text()
    assert other.stop() == 0


def test_a_stop_while_it_waits(new_bookies: Bookies, tmp_path: Path) -> None:
    """The bookie ends at once, as requested, and leaves no directory behind."""
    _, other = new_bookies(2, zkTimeout="1000", startupMetadataTimeoutMs="-1")
    before = snapshot(other)
    ready, _ = launched(other, tmp_path)
    os.close(ready)
    other.signal(signal.SIGTERM)
    assert other.wait() == 0
    assert snapshot(other) == before
    assert "stopped before its start was complete" in other.log_text()
