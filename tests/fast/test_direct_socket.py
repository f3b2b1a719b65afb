"""Test the waits of a direct connection: its end, its time limits, other threads and signals."""

import signal
import threading
from types import FrameType

import pytest

from bookie._fast.client.direct_link import LATE, LOST
from tests.fast.direct_peer import DIGEST, SOON_S, Peer, connected, peer, sealed

__all__ = ["peer"]


def test_a_bookie_that_hangs_up(peer: Peer) -> None:
    """A connection that ends inside a frame is lost."""
    peer.send(b"\0\0\1\0abc")
    peer.sock.close()
    assert peer.read(1) is None
    assert (peer.link.outcome, peer.link.usable) == (LOST, False)


@pytest.mark.parametrize("sent", [b"", b"\0\0\1\0abc"])
def test_time_limits(sent: bytes) -> None:
    """Silence for longer than the patience, or a call's own limit, ends the connection."""
    with connected(patience_s=SOON_S) as peer:
        peer.send(sent)
        assert peer.read(1) is None
        assert (peer.link.outcome, peer.link.usable) == (LATE, False)
    with connected() as peer:
        peer.send(sent)
        assert peer.link.read(7, 1, DIGEST.digester, SOON_S) is None
        assert (peer.link.outcome, peer.link.usable) == (LATE, False)


def test_shutdown_by_another_thread(peer: Peer) -> None:
    """A thread that waits finds the connection lost when another one ends it."""
    timer = threading.Timer(SOON_S, peer.link.close)
    timer.start()
    assert peer.read(1) is None
    assert (peer.link.outcome, peer.link.usable) == (LOST, False)
    timer.join()


def test_signals() -> None:
    """A handler that returns does not disturb the wait; one that raises ends the connection, whose response is due."""
    seen: list[int] = []

    def handler(number: int, frame: FrameType | None) -> None:
        del frame
        seen.append(number)
        if len(seen) > 1:
            raise InterruptedError
        one.send_entry(1, sealed(1))

    before = signal.signal(signal.SIGALRM, handler)
    try:
        with connected() as one:
            signal.setitimer(signal.ITIMER_REAL, SOON_S)
            assert one.read(1) == sealed(1)
            signal.setitimer(signal.ITIMER_REAL, SOON_S)
            with pytest.raises(InterruptedError):
                one.read(2)
            assert not one.link.usable
    finally:
        signal.signal(signal.SIGALRM, before)
