"""Strangers at the HTTP port and the admin port: too many connections, requests without end, responses that nobody
reads.

Whatever they do, probes are answered, adds continue, and the process lives.
"""

import contextlib
import http.client
import re
import socket
import ssl
import time
from collections.abc import Callable
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from bookie.admin_port.channel import AdminAccess, open_channel
from tests.fixtures.bookies import BookieProcess
from tests.fixtures.certificates import Authority
from tests.hostile.peer import Peer, add

pytestmark = pytest.mark.leaks("gRPC keeps its own threads and their descriptors as long as the process lives")

Bookies = Callable[..., list[BookieProcess]]
WAIT_S = 60.0
MIB = 1 << 20
HTTP = {"httpServerEnabled": "true", "httpServerPort": "0"}
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
"""The beginning of a gRPC connection, with empty SETTINGS."""
HALF_A_BODY = b"PUT /api/v1/bookie/state/readonly HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000\r\n\r\n{"


def http_of(bookie: BookieProcess) -> tuple[str, int]:
    """Return the bookie's HTTP port."""
    host, _, port = bookie.planes["http"].rpartition(":")
    return host, int(port)


def admin_of(bookie: BookieProcess) -> tuple[str, int]:
    """Return the bookie's admin port."""
    host, _, port = bookie.admin.rpartition(":")
    return host, int(port)


def probe(bookie: BookieProcess, path: str = "/livez") -> int:
    """Return the status that a Kubernetes probe gets on its own connection, or 0."""
    connection = http.client.HTTPConnection(*http_of(bookie), timeout=WAIT_S)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    except OSError:
        return 0
    finally:
        connection.close()


def check(channel: grpc.Channel) -> None:
    """Make a call that needs no token."""
    health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=WAIT_S)


def ask_admin(bookie: BookieProcess) -> None:
    """Make a call that everyone may make."""
    options = [("grpc.use_local_subchannel_pool", 1)]
    with grpc.insecure_channel(bookie.admin, options=options) as channel:
        check(channel)


def ended(sock: socket.socket) -> bool:
    """Return whether the bookie closes the connection within a minute; what it sends before is ignored."""
    sock.settimeout(WAIT_S)
    try:
        while sock.recv(1 << 16):
            pass
    except TimeoutError:
        return False
    except OSError:
        pass
    return True


def metric(bookie: BookieProcess, name: str, **labels: str) -> float:
    """Return a sample of the bookie's metrics."""
    connection = http.client.HTTPConnection(*http_of(bookie), timeout=WAIT_S)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    connection.close()
    reported = ",".join(f'{label}="{value}"' for label, value in labels.items())
    found = re.search(rf"^{name}\{{{reported}\}} (\S+)$", text, re.MULTILINE)
    assert found, text
    return float(found[1])


def until(true: Callable[[], bool]) -> None:
    """Wait, for at most a minute, until the condition holds."""
    deadline = time.monotonic() + WAIT_S
    while not true():
        assert time.monotonic() < deadline


def test_bare_connections_to_every_port(new_bookies: Bookies, many_descriptors: int) -> None:
    """With 1,200 idle connections to each port and 1024 descriptors, adds and checkpoints continue, probes and
    operators are served, and the log has neither a traceback nor a line for each connection.
    """
    (bookie,) = new_bookies(1, **HTTP, flushInterval="50", journalMaxSizeMB="16", logSizeLimit=str(8 * MIB))
    bookie.descriptors_max = 1024
    bookie.start()
    with contextlib.ExitStack() as flood, Peer(bookie.address) as writer:
        assert writer.ask(add(1, 0)).code == 0
        logged = bookie.log_size()
        for number in range(1, 1201):
            for address in (bookie.address, http_of(bookie), admin_of(bookie)):
                flood.enter_context(socket.create_connection(address, timeout=WAIT_S))
            if number % 20 == 0:
                assert writer.ask(add(1, number, b"x" * MIB)).code == 0
            if number % 200 == 0:
                assert probe(bookie) == 200
                ask_admin(bookie)
        assert len(list(bookie.ledgers.rglob("*.log"))) >= 4
        assert probe(bookie, "/readyz") == 200
        assert len(list(Path(f"/proc/{bookie.pid}/fd").iterdir())) <= 1024
        reported = bookie.log_since(logged)
    assert "Traceback" not in reported
    assert reported.count("turned away") < 400
    assert bookie.stop() == 0


@pytest.mark.thorough
def test_bodies_that_do_not_come(bookies: Bookies) -> None:
    """300 probes that announce a body but send none are answered, and delay nobody."""
    (bookie,) = bookies(1, **HTTP)
    request = b"POST /heartbeat HTTP/1.1\r\nhost: localhost\r\ncontent-length: 10\r\n\r\n"
    with contextlib.ExitStack() as stack:
        hanging = [stack.enter_context(socket.create_connection(http_of(bookie), timeout=WAIT_S)) for _ in range(300)]
        for one in hanging:
            with contextlib.suppress(ConnectionError):  # it may have been evicted already
                one.sendall(request)
        for path in ("/livez", "/heartbeat", "/healthz", "/readyz", "/api/v1/bookie/is_ready"):
            assert probe(bookie, path) == 200, path
        assert hanging[-1].recv(1 << 16).startswith(b"HTTP/1.1 200 OK")
        assert all(ended(one) for one in hanging)


@pytest.mark.thorough
@pytest.mark.parametrize("part", [
    b"", b"G", b"GET /livez HTTP/1.1\r\nhost: ", HALF_A_BODY,
    b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\nGET /li",
])  # fmt: skip
def test_requests_without_an_end(bookies: Bookies, part: bytes) -> None:
    """Clients that stop before, within or between requests are closed, and exclude no probe meanwhile, even if there
    are more than the port accepts.
    """
    (bookie,) = bookies(1, **HTTP, httpServerReceiveTimeoutMs="2000")
    with contextlib.ExitStack() as stack:
        slow = [stack.enter_context(socket.create_connection(http_of(bookie), timeout=WAIT_S)) for _ in range(400)]
        for one in slow:
            with contextlib.suppress(ConnectionError):
                one.sendall(part)
        assert probe(bookie) == 200
        assert all(ended(one) for one in slow)
    reasons = [("gave_way", 1), ("late" if part else "silent", 1)]
    for reason, least in reasons:
        assert metric(bookie, "pybookie_port_peers_turned_away_total", port="http", reason=reason) >= least


@pytest.mark.thorough
def test_requests_that_come_byte_by_byte(bookies: Bookies) -> None:
    """Each byte comes in time, but the request does not, so the connection is closed."""
    (bookie,) = bookies(1, **HTTP, httpServerReceiveTimeoutMs="500")
    for begun in (b"GET /livez HTTP/1.1\r\n", HALF_A_BODY):
        with socket.create_connection(http_of(bookie), timeout=WAIT_S) as sock:
            sock.sendall(begun)
            sock.settimeout(0.05)
            deadline = time.monotonic() + WAIT_S
            with contextlib.suppress(ConnectionError):
                while True:
                    assert time.monotonic() < deadline
                    sock.sendall(b"x")
                    with contextlib.suppress(TimeoutError):
                        if not sock.recv(1 << 16):
                            break


@pytest.mark.thorough
def test_answers_that_nobody_takes(bookies: Bookies) -> None:
    """Peers that never read large responses are closed, and others can use their places meanwhile."""
    (bookie,) = bookies(1, **HTTP, httpServerSendTimeoutMs="500")
    ask = b"GET /console/style.css HTTP/1.1\r\nhost: localhost\r\n\r\n" * 1000
    with contextlib.ExitStack() as stack:
        peers = [stack.enter_context(Peer(http_of(bookie), receive_bytes=4096)) for _ in range(4)]
        for peer in peers:
            peer.sock.sendall(ask)
        until(lambda: metric(bookie, "pybookie_port_peers_turned_away_total", port="http", reason="slow_reader") == 4)
        assert probe(bookie) == 200
    until(lambda: "it did not receive its response in time" in bookie.log_text())


@pytest.mark.thorough
def test_connections_of_one_address(bookies: Bookies) -> None:
    """Each address has its limit at both ports, and other addresses are not affected."""
    (bookie,) = bookies(
        1, **HTTP, adminMaxConnections="32", adminMaxConnectionsPerAddress="16", httpServerMaxConnections="400"
    )
    with contextlib.ExitStack() as stack:

        def speak(address: tuple[str, int], source: str, first: bytes) -> bytes:
            """Return what the bookie answers to the first bytes; nothing if it closes the connection."""
            try:
                sock = stack.enter_context(socket.create_connection(address, WAIT_S, source_address=(source, 0)))
                sock.sendall(first)
                return sock.recv(1 << 16)
            except ConnectionError:
                return b""

        answers = [speak(admin_of(bookie), "127.0.0.1", PREFACE) for _ in range(20)]
        assert [bool(answer) for answer in answers] == [True] * 16 + [False] * 4
        assert speak(admin_of(bookie), "127.0.0.2", PREFACE)
        idle = b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n"
        assert all(speak(http_of(bookie), "127.0.0.1", idle) for _ in range(300)), "the oldest gives way"
        assert speak(http_of(bookie), "127.0.0.2", idle)
        assert metric(bookie, "pybookie_port_connections", port="http") == 193
        assert metric(bookie, "pybookie_port_connections", port="admin") == 17
    reason = "connections_of_address"
    assert metric(bookie, "pybookie_port_peers_turned_away_total", port="admin", reason=reason) == 4
    until(lambda: "too many connections from its address" in bookie.log_text())


def test_a_flood_leaves_other_addresses_alone(bookies: Bookies) -> None:
    """Connections of an address with many are evicted, not the single one of another address, however old it is."""
    (bookie,) = bookies(1, **HTTP, httpServerMaxConnections="160", httpServerMaxConnectionsPerAddress="160")
    with contextlib.ExitStack() as stack:

        def connect(source: str) -> socket.socket:
            return stack.enter_context(socket.create_connection(http_of(bookie), WAIT_S, source_address=(source, 0)))

        for _ in range(160):
            connect("127.0.0.2")
        kept = connect("127.0.0.1")
        for _ in range(400):
            connect("127.0.0.3")
        kept.sendall(b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n")
        assert kept.recv(1 << 16).startswith(b"HTTP/1.1 200 OK")


@pytest.mark.thorough
def test_an_admin_port_that_is_full(bookies: Bookies) -> None:
    """Silent connections are evicted in favour of operators; those that begin to speak and stop are closed in time."""
    (bookie,) = bookies(
        1, **HTTP, adminMaxConnections="16", adminMaxConnectionsPerAddress="16", adminHandshakeTimeoutMs="1000"
    )
    with contextlib.ExitStack() as stack:
        silent = [stack.enter_context(socket.create_connection(admin_of(bookie), WAIT_S)) for _ in range(40)]
        ask_admin(bookie)
        assert all(ended(one) for one in silent)
        begun = [stack.enter_context(socket.create_connection(admin_of(bookie), WAIT_S)) for _ in range(16)]
        for one in begun:
            one.sendall(PREFACE[:5])
        assert all(ended(one) for one in begun)
        ask_admin(bookie)


@pytest.mark.thorough
def test_probes_while_every_thread_of_the_console_is_busy(bookies: Bookies) -> None:
    """Every thread and the queue wait for an unresponsive bookie, and each probe is still answered."""
    first, second = bookies(2, **HTTP, httpServerThreads="2")
    second.freeze()
    try:
        with contextlib.ExitStack() as stack:
            asking = [stack.enter_context(socket.create_connection(http_of(first), WAIT_S)) for _ in range(80)]
            for one in asking:
                one.sendall(b"GET /api/v1/bookie/list_bookie_info HTTP/1.1\r\nhost: localhost\r\n\r\n")
            assert asking[-1].recv(1 << 16).startswith(b"HTTP/1.1 503"), "the queue is full"
            for path in ("/livez", "/heartbeat", "/healthz", "/readyz", "/api/v1/bookie/is_ready"):
                assert probe(first, path) == 200, path
    finally:
        second.thaw()


@pytest.mark.thorough
def test_handshakes_that_stop_half_way(bookies: Bookies, tmp_path: Path) -> None:
    """With TLS on both ports, more unfinished handshakes than there are places exclude neither a probe nor an
    operator, and are ended.
    """
    ca = Authority(tmp_path / "ca")
    own = ca.issue("bookie", hosts=["127.0.0.1"])
    (bookie,) = bookies(
        1, **HTTP, adminTlsCertificatePath=str(own.certificate), adminTlsKeyPath=str(own.key),
        httpServerTlsEnable="true", httpServerReceiveTimeoutMs="1000", adminHandshakeTimeoutMs="1000",
    )  # fmt: skip
    hello = ssl.MemoryBIO()
    client = ssl.create_default_context(cafile=str(ca.certificate))
    with contextlib.suppress(ssl.SSLWantReadError):
        client.wrap_bio(ssl.MemoryBIO(), hello, server_hostname="127.0.0.1").do_handshake()
    part = hello.read()[:100]
    with contextlib.ExitStack() as stack:
        begun = []
        for address in [http_of(bookie)] * 300 + [admin_of(bookie)] * 100:
            begun.append(stack.enter_context(socket.create_connection(address, WAIT_S)))
            with contextlib.suppress(ConnectionError):
                begun[-1].sendall(part)
        connection = http.client.HTTPSConnection(*http_of(bookie), timeout=WAIT_S, context=client)
        connection.request("GET", "/livez")
        assert connection.getresponse().status == 200
        connection.close()
        assert all(ended(one) for one in begun)
    channel = open_channel(bookie.admin, AdminAccess(True, str(ca.certificate)))
    check(channel)
    channel.close()
    until(lambda: "its handshake or its request was not complete in time" in bookie.log_text())


def test_what_is_no_request_fills_no_log(bookies: Bookies) -> None:
    """Each invalid request gets an error, and the log has one line per second."""
    (bookie,) = bookies(1, **HTTP)
    logged = bookie.log_size()
    for _ in range(300):
        with socket.create_connection(http_of(bookie), WAIT_S) as sock:
            sock.sendall(b"\x16\x03 no request\r\n\r\n")
            assert sock.recv(1 << 16).startswith(b"HTTP/1.1 400")
    assert bookie.log_since(logged).count("Invalid HTTP request") <= 30


@pytest.mark.thorough
def test_an_admin_connection_without_calls_is_closed(bookies: Bookies) -> None:
    """A gRPC client opens another one by itself."""
    (bookie,) = bookies(1, **HTTP, adminIdleTimeoutMs="1000")
    options = [("grpc.use_local_subchannel_pool", 1)]
    with (
        grpc.insecure_channel(bookie.admin, options=options) as channel,
        socket.create_connection(admin_of(bookie), WAIT_S) as quiet,
    ):
        check(channel)
        quiet.sendall(PREFACE)
        assert ended(quiet)
        until(lambda: metric(bookie, "pybookie_port_connections", port="admin") == 0)
        check(channel)
