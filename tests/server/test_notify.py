"""What a bookie tells systemd on the socket that it provides."""

import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bookie.server.process.notify import notify, watchdog_s
from tests.fixtures.bookies import BookieProcess

HEARD_S = 60.0


@pytest.fixture
def inbox(tmp_path: Path) -> Iterator[socket.socket]:
    """A socket like systemd's."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as one:
        one.bind(str(tmp_path / "notify"))
        one.settimeout(HEARD_S)
        yield one


def hear(inbox: socket.socket, word: str) -> str:
    """Return the first message with this word, skipping others."""
    while word not in (said := inbox.recv(4096).decode()):
        continue
    return said


def test_a_bookie_tells_that_it_serves_lives_and_stops(
    inbox: socket.socket, new_bookies: Callable[..., list[BookieProcess]]
) -> None:
    """READY=1 is sent when clients are served, WATCHDOG=1 twice as often as required, STOPPING=1 before the stop."""
    (bookie,) = new_bookies(1)
    bookie.environment = {"NOTIFY_SOCKET": inbox.getsockname(), "WATCHDOG_USEC": "400000"}
    bookie.start()
    assert f"serves at 127.0.0.1:{bookie.port}" in hear(inbox, "READY=1")
    hear(inbox, "WATCHDOG=1")
    hear(inbox, "WATCHDOG=1")
    assert bookie.stop() == 0
    hear(inbox, "STOPPING=1")


def test_nobody_listens(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A socket that is gone, or that was meant for another process, changes nothing."""
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "gone"))
    notify("READY=1")
    monkeypatch.setenv("WATCHDOG_USEC", "10000000")
    assert watchdog_s() == 5
    monkeypatch.setenv("WATCHDOG_PID", "1")
    assert watchdog_s() is None


def test_an_abstract_address(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The address of an abstract socket begins with an @ in the environment."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as inbox:
        inbox.bind(f"\0{tmp_path}")
        inbox.settimeout(HEARD_S)
        monkeypatch.setenv("NOTIFY_SOCKET", f"@{tmp_path}")
        notify("READY=1", "STATUS=well")
        assert inbox.recv(4096) == b"READY=1\nSTATUS=well"
