"""Test what the loop that accepts connections does when the process has no descriptors left.

Module: server.accepting.
"""

import os
import resource
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.hostile.local import LocalBookie, local_bookie
from tests.hostile.peer import add
from tests.reference.wire_v2 import encode_request

HOLES = 8
IDLE_S = 1.0


@contextmanager
def no_descriptors(highest: int) -> Iterator[None]:
    """Let this process have no descriptor from `highest` on, though some with higher numbers are open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def cpu_s(bookie: LocalBookie) -> float:
    """Return the CPU time of the threads of the data port. It needs no descriptor."""
    idents = [thread.ident for thread in bookie.port.threads()]
    return sum(time.clock_gettime(time.pthread_getcpuclockid(ident)) for ident in idents if ident)


def test_a_lack_of_descriptors_is_waited_out(tmp_path: Path) -> None:
    """When even the spare descriptor is lost, connections wait in the backlog, the loop sleeps, and serves others."""
    holes = [os.open(os.devnull, os.O_RDONLY) for _ in range(HOLES)]
    with local_bookie(tmp_path) as bookie, bookie.peer() as known, socket.socket() as late:
        assert known.ask(add(1, 0)).code == 0
        late.settimeout(60.0)
        for hole in holes:
            os.close(hole)
        with no_descriptors(min(holes)):
            late.connect(bookie.address)
            late.sendall(encode_request(add(1, 1)))
            before, until = cpu_s(bookie), time.monotonic() + IDLE_S
            late.settimeout(0.1)
            while time.monotonic() < until:
                try:
                    assert late.recv(1) == b"nothing"
                except TimeoutError:
                    continue
            assert cpu_s(bookie) - before < IDLE_S / 10
            assert known.ask(add(1, 2)).code == 0
            assert bookie.stat("accepted") == 1
        late.settimeout(60.0)
        assert late.recv(1)
        assert bookie.stat("accepted") == 2
