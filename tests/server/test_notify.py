"""What a bookie tells systemd on the socket that it provides."""

import contextlib
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
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
    """Return the first message with this word, skipping a few others."""
    for _ in range(100):
        if word in (said := inbox.recv(4096).decode()):
            return said
    raise AssertionError(f"{word} did not come")


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


def test_what_is_sent_once_waits_for_a_slow_supervisor(inbox: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full queue takes no keep-alive message, but READY=1 arrives as soon as the supervisor reads."""
    monkeypatch.setenv("NOTIFY_SOCKET", inbox.getsockname())
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as other:
        sent = 0
        with contextlib.suppress(BlockingIOError):
            while True:
                other.sendto(b"STATUS=busy", inbox.getsockname())
                sent += 1
    notify("WATCHDOG=1")
    with ThreadPoolExecutor(1) as threads:
        ready = threads.submit(notify, "READY=1", patience_s=HEARD_S)
        assert [inbox.recv(4096) for _ in range(sent + 1)] == [b"STATUS=busy"] * sent + [b"READY=1"]
        ready.result()


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
