"""The door and the relay in front of gRPC, with a plain server behind them: bytes, both ends, peer names, limits."""

import contextlib
import hashlib
import os
import socket
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bookie_admin.door import Limits
from bookie_admin.gateway import Gateway
from bookie_admin.private_socket import PrivateSocket, peer_named

WAIT_S = 60.0
MIB = 1 << 20
Serve = Callable[[socket.socket], None]


@contextlib.contextmanager
def gateway(serve: Serve, *, wait_s: float = WAIT_S, connections: int = 100) -> Iterator[tuple[Gateway, int]]:
    """Run a gateway in front of a server that handles each connection with a function, on a thread of its own."""
    one = Gateway("admin", Limits(connections, connections, WAIT_S), wait_s=wait_s)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(one.private.path)
    listener.listen(100)
    threads: list[threading.Thread] = []

    def handle(sock: socket.socket) -> None:
        with sock, contextlib.suppress(OSError):
            sock.settimeout(WAIT_S)
            serve(sock)

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                sock, _ = listener.accept()
                threads.append(threading.Thread(target=handle, args=(sock,)))
                threads[-1].start()

    accepting = threading.Thread(target=accept)
    accepting.start()
    port = one.listen("127.0.0.1", 0)
    one.start()
    try:
        yield one, port
    finally:
        one.stop()
        listener.shutdown(socket.SHUT_RDWR)
        accepting.join()
        listener.close()
        for thread in threads:
            thread.join()


def echo(sock: socket.socket) -> None:
    """Send everything back, to the end."""
    while part := sock.recv(1 << 20):
        sock.sendall(part)


def test_every_byte_goes_both_ways() -> None:
    """64 MiB are sent to a server that sends them back; the end of one direction leaves the other open."""
    sent, came = hashlib.sha256(), hashlib.sha256()
    with gateway(echo) as (_, port), socket.create_connection(("127.0.0.1", port), WAIT_S) as sock:

        def send() -> None:
            for _ in range(64):
                part = os.urandom(MIB)
                sent.update(part)
                sock.sendall(part)
            sock.shutdown(socket.SHUT_WR)

        sender = threading.Thread(target=send)
        sender.start()
        while part := sock.recv(1 << 20):
            came.update(part)
        sender.join()
    assert came.digest() == sent.digest()


def test_who_half_closes_is_answered() -> None:
    """The server learns of the end before it responds."""

    def answer_at_the_end(sock: socket.socket) -> None:
        size = 0
        while part := sock.recv(1 << 16):
            size += len(part)
        sock.sendall(str(size).encode())

    with gateway(answer_at_the_end) as (_, port), socket.create_connection(("127.0.0.1", port), WAIT_S) as sock:
        sock.sendall(bytes(100_000))
        sock.shutdown(socket.SHUT_WR)
        assert sock.recv(100) == b"100000"
        assert sock.recv(100) == b""


def test_a_close_of_the_server_frees_the_place() -> None:
    """Its last bytes arrive, and its place is free for another connection even if the client does not close."""
    with gateway(lambda sock: sock.sendall(b"bye"), connections=1) as (one, port), contextlib.ExitStack() as stack:
        for _ in range(3):
            sock = stack.enter_context(socket.create_connection(("127.0.0.1", port), WAIT_S))
            sock.sendall(b"hello")
            assert sock.recv(100) == b"bye"
            assert sock.recv(100) == b""
        assert one.stats()["admin_connections"] == 1


def test_who_takes_nothing_is_turned_away() -> None:
    """Meanwhile the relay holds only what the sockets hold and one block."""
    held = threading.Semaphore(0)

    def talk(sock: socket.socket) -> None:
        try:
            while True:
                sock.sendall(bytes(MIB))
        finally:
            held.release()

    with gateway(talk, wait_s=0.5) as (one, port), socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.connect(("127.0.0.1", port))
        sock.sendall(b"hello")
        assert held.acquire(timeout=WAIT_S), "the server is told"
        assert one.stats()["admin_turned_away_slow_reader"] == 1
        assert one.stats()["admin_connections"] == 0


def test_the_server_sees_the_true_peer() -> None:
    """It sees the name of the connection, in gRPC's notation."""
    names: list[str] = []

    def note(sock: socket.socket) -> None:
        names.append("unix-abstract:" + sock.getpeername()[1:].decode())
        echo(sock)

    with gateway(note) as (_, port), socket.create_connection(("127.0.0.1", port), WAIT_S) as sock:
        sock.sendall(b"x")
        assert sock.recv(1) == b"x"
        assert [peer_named(name) for name in names] == [f"ipv4:127.0.0.1:{sock.getsockname()[1]}"]
    assert peer_named("unix-abstract:0123/ipv6:%5B::1%5D:80") == "ipv6:[::1]:80"
    assert peer_named("ipv4:10.0.0.1:1") == "ipv4:10.0.0.1:1"


def test_nobody_else_reaches_the_private_socket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its directory is ours alone, and then removed; afterwards only our descriptor leads to it."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    private = PrivateSocket()
    (directory,) = tmp_path.iterdir()
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(private.path)
        listener.listen(1)
        private.hide()
        assert not list(tmp_path.iterdir())
        with private.connect("ipv4:10.0.0.9:1") as visitor, listener.accept()[0] as inside:
            visitor.sendall(b"here")
            assert inside.recv(10) == b"here"
            assert inside.getpeername().endswith(b"/ipv4:10.0.0.9:1")
    private.close()
    private.close()


def test_a_gateway_that_was_never_started() -> None:
    """It releases everything it has, in whatever state it is."""
    Gateway("admin", Limits(1, 1, WAIT_S), wait_s=WAIT_S).stop()
    one = Gateway("admin", Limits(1, 1, WAIT_S), wait_s=WAIT_S)
    one.listen("127.0.0.1", 0)
    one.stop()
    one.stop()
