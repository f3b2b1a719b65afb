"""A fuzz target for what follows START_TLS: in its segment, instead of a ClientHello, or inside TLS.

It uses real sockets in this process. The bookie may answer anything, but it must end each such connection, keep
nothing of it, and go on to serve others. To run it alone:

    python -m tests.fuzz.start_tls start_tls [libFuzzer options] [corpus directory]
"""

import contextlib
import socket
import ssl
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.fixtures.certificates import Authority
from tests.golden.wire_v2 import FRAMES
from tests.hostile.auth_frames import auth
from tests.hostile.local import LocalBookie, local_bookie
from tests.hostile.peer import Peer, add, read
from tests.hostile.tls_peer import ACCEPTED, START_TLS, TlsPeer, client_context, settings_of

NAME = "start_tls"
INSIDE = 0x80
"""A first byte from here on: the rest goes through a handshake that succeeds."""
BEHIND = 0x40
"""From here on: in the segment of START_TLS."""
FREE = {"tls_connections", "tls_handshaking"}


@contextlib.contextmanager
def running() -> Iterator[Callable[[bytes], None]]:
    """Yield the target while its bookie runs, and check in the end that nothing of any connection is left."""
    with tempfile.TemporaryDirectory() as place:
        ca = Authority(Path(place) / "ca")
        settings = settings_of(ca.issue("bookie", hosts=["127.0.0.1"]))
        context = client_context(ca)
        with local_bookie(Path(place) / "bookie", tls=settings) as bookie, bookie.peer() as plain:
            assert plain.ask(add(1, 7, b"x")).code == 0
            assert plain.ask(read(1, 7)).code == 0
            alone = bookie.stat("output_buffer_bytes")

            def target(data: bytes) -> None:
                if data[:1] >= bytes([INSIDE]):
                    _inside(bookie, context, data[1:])
                elif data[:1] >= bytes([BEHIND]):
                    _behind(bookie, data[1:])
                else:
                    _instead(bookie, data[1:])
                assert plain.ask(read(1, 7)).code == 0

            yield target
            while any(bookie.stat(name) for name in FREE):
                assert plain.ask(read(1, 7)).code == 0
            # A connection is off the lists of TLS a moment before its memory is free.
            bookie.until("output_buffer_bytes", lambda held: held <= alone)


def _instead(bookie: LocalBookie, data: bytes) -> None:
    """Send the data instead of a handshake."""
    with bookie.peer() as peer:
        peer.sock.sendall(START_TLS)
        assert peer.take(len(ACCEPTED)) == ACCEPTED
        _say(peer, data)


def _behind(bookie: LocalBookie, data: bytes) -> None:
    """Send the data before the bookie could answer START_TLS."""
    with bookie.peer() as peer:
        _say(peer, START_TLS + data)


def _inside(bookie: LocalBookie, context: ssl.SSLContext, data: bytes) -> None:
    """Send the data as frames through TLS."""
    with TlsPeer(bookie.address, context) as peer:
        _say(peer, data)


def _say(peer: Peer, data: bytes) -> None:
    """Send the data and hang up. The bookie may close the connection earlier."""
    with contextlib.suppress(ConnectionError, ssl.SSLError):
        peer.sock.sendall(data)
        peer.sock.shutdown(socket.SHUT_WR)
    peer.sock.close()


def seeds() -> list[bytes]:
    """Return AUTH messages, a ClientHello (whole, cut and doubled), an alert, plain frames, and such frames for TLS."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    shy = ssl.create_default_context().wrap_bio(incoming, outgoing, server_hostname="localhost")
    with contextlib.suppress(ssl.SSLWantReadError):
        shy.do_handshake()
    hello = outgoing.read()
    frames = b"".join(FRAMES.values())
    alert = b"\x15\x03\x03\x00\x02\x02\x28"
    message = auth(3, "sasl", b"first")
    instead = [
        message,
        message + hello,
        message + message,
        hello,
        hello[: len(hello) // 2],
        hello + hello,
        hello + alert,
        alert,
        frames,
        START_TLS,
        b"",
    ]
    inside = [frames, START_TLS, frames[:100], b"\xff" * 50]
    behind = [b"", message, message[:5], message + message, message + hello, auth(2, "sasl", b""), hello, START_TLS]
    reported = {0: instead, BEHIND: behind, INSIDE: inside}
    return [bytes([first]) + seed for first, texts in reported.items() for seed in texts]


def main() -> None:
    """Fuzz the target until stopped."""
    import atheris

    assert sys.argv.pop(1) == NAME
    with running() as target:
        for seed in seeds():
            target(seed)
        atheris.Setup(sys.argv, target)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
