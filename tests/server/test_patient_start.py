"""A start that waits for its metadata store: nothing is served, nothing stays behind, and it continues by itself."""

import os
import signal
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fixtures.bookies import BookieProcess
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


def test_a_store_that_comes_later(new_bookies: Bookies, tmp_path: Path) -> None:
    """Until then the bookie's ports are closed and systemd does not take it for ready; then it serves."""
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
