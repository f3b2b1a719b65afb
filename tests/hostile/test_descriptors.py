"""Connections that use up the descriptors of the process (module base.file).

The storage has reserved descriptors, so that no number of connections makes a write fail.
"""

import contextlib
import fcntl
import os
import socket
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.fixtures.bookies import BookieProcess
from tests.hostile.peer import Peer, add

WAIT_S = 30.0
MIB = 1 << 20
LIMIT = 600
"""Descriptors of the process, a quarter of them for the storage."""
DATA, OTHERS = LIMIT // 2, LIMIT // 4
"""Half of them are for the data port, which uses them all; those of other ports are taken before the start."""
PORTS = {"httpServerEnabled": "true", "httpServerPort": "0"}


def descriptors(bookie: BookieProcess) -> int:
    """Return the number of descriptors that the bookie's process has open."""
    return len(list(Path(f"/proc/{bookie.pid}/fd").iterdir()))


def is_logged(bookie: BookieProcess, text: str) -> bool:
    """Return whether its log contains the text."""
    return text in bookie.log_text()


def fill(first: int, end: int) -> list[int]:
    """Take those of these descriptors of this process that are free, and return them."""
    taken: list[int] = []
    with Path("/dev/null").open() as nothing:
        while (one := fcntl.fcntl(nothing, fcntl.F_DUPFD, first)) < end:
            taken.append(one)
    os.close(one)
    return taken


@pytest.fixture
def small(new_bookies: Callable[..., list[BookieProcess]]) -> Callable[..., BookieProcess]:
    """Starts a bookie with few descriptors."""

    def start(**settings: str) -> BookieProcess:
        (bookie,) = new_bookies(1, **PORTS, **settings)
        taken = fill(DATA, DATA + OTHERS)
        bookie.inherited = tuple(range(DATA, DATA + OTHERS))
        bookie.descriptors_max = LIMIT
        ready = bookie.launch()
        for one in taken:
            os.close(one)
        return bookie.ready(ready)

    return start


def hold_all(bookie: BookieProcess, flood: contextlib.ExitStack) -> None:
    """Open connections to every port until no descriptor is left."""
    for where in (f"127.0.0.1:{bookie.port}", bookie.admin, bookie.planes["http"]):
        host, port = where.rsplit(":", 1)
        for _ in range(LIMIT):
            with contextlib.suppress(ConnectionError):  # the connection may be refused at once
                flood.enter_context(socket.create_connection((host, int(port)), WAIT_S))
    await_that(lambda: descriptors(bookie) >= LIMIT - 2, bookie)


def await_that(true: Callable[[], bool], bookie: BookieProcess) -> None:
    """Wait, for at most half a minute and while the process lives, until the condition holds."""
    deadline = time.monotonic() + WAIT_S
    while not true():
        assert bookie.process is not None
        assert bookie.process.poll() is None, bookie.log_text()[-2000:]
        assert time.monotonic() < deadline, bookie.log_text()[-2000:]


@pytest.mark.usefixtures("many_descriptors")
def test_storage_opens_files_beside_a_flood_of_connections(small: Callable[..., BookieProcess]) -> None:
    """Journal files, entry logs and marks are created although no descriptor is left."""
    bookie = small(flushInterval="50", journalMaxSizeMB="16", logSizeLimit=str(8 * MIB))
    with contextlib.ExitStack() as flood, Peer(bookie.address) as peer:
        hold_all(bookie, flood)
        for entry in range(96):
            assert peer.ask(add(1, entry, b"x" * MIB)).code == 0
        assert len(list(bookie.ledgers.rglob("*.log"))) >= 4
        assert descriptors(bookie) >= LIMIT - 2
    await_that(lambda: descriptors(bookie) < LIMIT - DATA // 2, bookie)
    with Peer(bookie.address) as peer:
        assert peer.ask(add(2, 0)).code == 0


@pytest.mark.thorough
@pytest.mark.usefixtures("many_descriptors")
def test_background_work_comes_later(small: Callable[..., BookieProcess]) -> None:
    """Neither collection nor scrub ends the process, and a log that cannot be opened now does not count as damaged."""
    bookie = small(gcWaitTime="50", scrubIntervalSeconds="1", logSizeLimit=str(8 * MIB))
    with contextlib.ExitStack() as flood, Peer(bookie.address) as peer:
        for entry in range(32):
            assert peer.ask(add(1, entry, b"x" * MIB)).code == 0
        hold_all(bookie, flood)
        for reported in ("no entry log is collected", "no file descriptor is left; the scrub continues later"):
            await_that(partial(is_logged, bookie, reported), bookie)
        assert peer.ask(add(1, 32)).code == 0
    assert not is_logged(bookie, "found damage")
