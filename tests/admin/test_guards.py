"""Access to the admin port, and its limits: tokens, TLS, certificates, concurrency, deadlines."""

import contextlib
import http.client
import re
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import pytest

from bookie.admin_port.channel import AdminAccess, open_channel
from bookie.errors import ConfigurationError, MetadataStoreError, SecurityError
from bookie.metadata import open_driver
from bookie.metadata.records.ledger_metadata import DigestType, LedgerMetadata, Segment
from bookie.pb import bookie_service_pb2 as pb
from bookie.pb import metrics_service_pb2 as metrics_pb
from bookie.pb.bookie_service_pb2_grpc import BookieStub
from bookie.pb.metrics_service_pb2_grpc import MetricsStub
from bookie.server.configuration.settings import AccessSettings
from bookie_admin.access import Access
from bookie_admin.interceptor import CallInterceptor, Share, WorkPool
from bookie_admin.services.metrics import INTERVAL_MS_MAX, MetricsService
from tests.fixtures.bookies import BookieProcess
from tests.fixtures.certificates import Authority

pytestmark = pytest.mark.leaks("gRPC keeps its own threads and their descriptors as long as the process lives")

CALL_S = 60.0
HURRY_S = 5.0
LEDGER = 7
READER, OPERATOR = "reader-reader-reader", "operator-operator-op"
Bookies = Callable[..., list[BookieProcess]]


class Guarded:
    """A bookie whose admin port has TLS, requests certificates, and has two tokens."""

    def __init__(self, directory: Path) -> None:
        self.ca = Authority(directory / "ca")
        self.stranger = Authority(directory / "stranger", "stranger")
        own = self.ca.issue("bookie", hosts=["127.0.0.1"])
        self.tokens = directory / "tokens"
        self.tokens.write_text(f"read:{READER}\noperate:alice:{OPERATOR}\n")
        self.tokens.chmod(0o600)
        settings = {
            "advertisedAddress": "127.0.0.1",
            "adminTokensFile": str(self.tokens),
            "adminTlsCertificatePath": str(own.certificate),
            "adminTlsKeyPath": str(own.key),
            "adminTlsClientCaPath": str(self.ca.certificate),
            "adminTlsSubjects": "operate:ops.example, read:web.example",
            "httpServerEnabled": "true",
            "httpServerPort": "0",
            "httpServerTlsEnable": "true",
        }
        self.bookie = BookieProcess(directory / "bookie", f"lmdb://{directory}/metadata", settings).start()

    def access(self, name: str, token: str = "", *, ca: Authority | None = None) -> AdminAccess:
        """Return the access of a client with a certificate of this name, and optionally a token."""
        party = (ca or self.ca).issue(name, hosts=[name])
        file = self.tokens.with_name(f"mine-{len(token)}")
        file.write_text(token)
        trusted = str(self.ca.certificate)
        return AdminAccess(True, trusted, str(party.certificate), str(party.key), str(file) if token else None)

    def code(self, access: AdminAccess, call: str, request: Any) -> str:
        """Return the status code of one call."""
        channel = open_channel(self.bookie.admin, access)
        try:
            getattr(BookieStub(channel), call)(request, timeout=CALL_S)  # type: ignore[no-untyped-call]  # generated
        except grpc.RpcError as error:
            return str(error.code().name)
        finally:
            channel.close()
        return "OK"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """A `Guarded` bookie."""
    one = Guarded(tmp_path_factory.mktemp("guarded"))
    yield one
    assert one.bookie.stop() == 0


def test_who_may_do_what(guarded: Guarded) -> None:
    """S1, S3: with a certificate, a token or neither; an unknown certificate and clear text get no response."""
    ask, order = ("GetLogLevels", pb.GetLogLevelsRequest()), ("SetReadOnly", pb.SetReadOnlyRequest())
    cells = [
        (guarded.access("ops.example"), "OK", "OK"),
        (guarded.access("web.example"), "OK", "PERMISSION_DENIED"),
        (guarded.access("nobody.example"), "UNAUTHENTICATED", "UNAUTHENTICATED"),
        (guarded.access("nobody.example", READER), "OK", "PERMISSION_DENIED"),
        (guarded.access("web.example", f"operate:{OPERATOR}"), "OK", "OK"),
        (guarded.access("nobody.example", READER + "x"), "UNAUTHENTICATED", "UNAUTHENTICATED"),
        (guarded.access("ops.example", ca=guarded.stranger), "UNAVAILABLE", "UNAVAILABLE"),
        (AdminAccess(True, str(guarded.ca.certificate)), "UNAVAILABLE", "UNAVAILABLE"),
        (AdminAccess(), "UNAVAILABLE", "UNAVAILABLE"),
    ]
    for number, (access, reads, operates) in enumerate(cells):
        assert (guarded.code(access, *ask), guarded.code(access, *order)) == (reads, operates), number
    said = [line for line in guarded.bookie.log_text().splitlines() if "msg=audit" in line]
    assert [("certificate:ops.example" in line, "outcome=refused" in line) for line in said] == [
        (True, False), (False, True), (False, True), (False, True), (False, False), (False, True)
    ]  # fmt: skip
    assert ["caller=unknown" in line for line in said] == [False, False, True, False, False, True]
    assert "token:alice" in said[-2]
    assert all(re.search(r"peer=ipv4:127\.0\.0\.1:\d+ ", line) for line in said), "who it really was"
    assert not any(secret in guarded.bookie.log_text() for secret in (READER, OPERATOR))


def test_the_http_port_speaks_tls(guarded: Guarded) -> None:
    """S3: it uses the same certificates and tokens, and no clear text; a certificate that is replaced is used for the
    next connection.
    """
    host, _, port = guarded.bookie.planes["http"].rpartition(":")

    def ask(name: str = "", token: str = "") -> tuple[int, int]:
        context = ssl.create_default_context(cafile=str(guarded.ca.certificate))
        if name:
            party = guarded.ca.issue(name)
            context.load_cert_chain(party.certificate, party.key)
        connection = http.client.HTTPSConnection(host, int(port), timeout=CALL_S, context=context)
        connection.request("GET", "/metrics", headers={"authorization": f"Bearer {token}"} if token else {})
        assert isinstance(connection.sock, ssl.SSLSocket)
        shown = connection.sock.getpeercert()
        status = connection.getresponse().status
        connection.close()
        assert shown
        return status, int(str(shown["serialNumber"]), 16)

    statuses = [ask(*who)[0] for who in (("web.example",), ("nobody.example",), (), ("", READER), ("", READER + "x"))]
    assert statuses == [200, 401, 401, 200, 401]
    with socket.create_connection((host, int(port)), timeout=CALL_S) as clear:
        clear.sendall(b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n")
        with contextlib.suppress(ConnectionError):
            assert not clear.recv(5).startswith(b"HTTP")
    _, before = ask("web.example")
    guarded.ca.issue("bookie", hosts=["127.0.0.1"])
    status, after = ask("web.example")
    assert status == 200
    assert before != after


def test_metadata_of_another_bookie_by_tls(guarded: Guarded, bookies: Bookies) -> None:
    """A second bookie keeps its metadata in the guarded one over grpcs. A client without a role is refused at once,
    and a reader sees which ledgers exist, but no password.
    """
    party = guarded.ca.issue("ops.example")
    files = f"ca={guarded.ca.certificate}&certificate={party.certificate}&key={party.key}"
    uri = f"grpcs://{guarded.bookie.admin}?{files}"
    (second,) = bookies(1, metadataServiceUri=uri)
    driver = open_driver(uri)
    driver.start()
    assert driver.bookies.present(read_only=False) == {guarded.bookie.id, second.id}
    metadata = LedgerMetadata(
        ensemble_size=1,
        write_quorum=1,
        ack_quorum=1,
        segments=(Segment(0, (second.id,)),),
        digest_type=DigestType.CRC32C,
        password=b"secret",
    )
    driver.ledgers.create(LEDGER, metadata)
    assert driver.ledgers.read(LEDGER).value.password == b"secret"
    driver.stop()
    web = guarded.ca.issue("web.example")
    files = f"ca={guarded.ca.certificate}&certificate={web.certificate}&key={web.key}"
    reader = open_driver(f"grpcs://{guarded.bookie.admin}?{files}")
    reader.start()  # without a session, which needs the role operate
    assert [*reader.ledgers.ranges()] == [[LEDGER]]
    with pytest.raises(SecurityError, match="may not open a session"):
        reader.registrations.register("web", b"", read_only=False)
    with pytest.raises(SecurityError, match="has the role read, but this needs operate"):
        reader.ledgers.read(LEDGER)  # it would reveal its password
    reader.stop()
    nobody = guarded.ca.issue("nobody.example")
    files = f"ca={guarded.ca.certificate}&certificate={nobody.certificate}&key={nobody.key}"
    with pytest.raises(SecurityError, match="is unknown"):
        open_driver(f"grpcs://{guarded.bookie.admin}?{files}").start()
    with pytest.raises(MetadataStoreError, match="did not answer"):
        open_driver(f"grpc://{guarded.bookie.admin}", session_timeout_ms=500).start()
    assert second.stop() == 0


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("grpc://h:1?ca=/x", "ca=/x is not one of token=FILE"),
        ("grpcs://h:1?certificate=/x", "come together"),
        ("grpcs://h:1?token=", "is not one of"),
        ("grpcs://h:1?ca=/does/not/exist", "TLS authorities file /does/not/exist"),
        ("grpc://h:1?token=/does/not/exist", "token file /does/not/exist"),
    ],
)
def test_uris_that_cannot_be_used(query: str, says: str) -> None:
    """The line names what is wrong."""
    with pytest.raises(ConfigurationError, match=says):
        open_driver(query).start()


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"adminHost": "192.0.2.1"}, "adminHost=192.0.2.1"),
        ({"adminTokensFile": "/does/not/exist"}, "adminTokensFile=/does/not/exist"),
        ({"adminTlsCertificatePath": "/x", "adminTlsKeyPath": "/y"}, "adminTlsCertificatePath=/x"),
    ],
)
def test_a_start_that_is_refused(new_bookies: Bookies, settings: dict[str, str], says: str) -> None:
    """S1, S3: an admin port that is open to everybody, or not as configured, is refused with exit code 1."""
    (bookie,) = new_bookies(1, **settings)
    assert bookie.run() == 1
    assert says in bookie.log_text()
    assert "Traceback" not in bookie.log_text()


class Slow:
    """A bookie whose metrics are only returned once `release` is set; it counts the requests."""

    def __init__(self) -> None:
        self.release = threading.Event()
        self.asked = 0
        self.entered = threading.Semaphore(0)

    def metrics(self) -> list[Any]:
        """Wait, then return metrics."""
        self.asked += 1
        self.entered.release()
        self.release.wait(CALL_S)
        return []


@pytest.fixture
def slow() -> Iterator[tuple[Slow, WorkPool, Any]]:
    """A plane with two threads for calls and one for a stream, where two calls may wait."""
    control, known = Slow(), Share(calls=2, waiting_max=2, streams_max=1)
    pool, strangers = known.pool, Share(calls=1, waiting_max=1, streams_max=1)
    keeper = CallInterceptor(Access(AccessSettings(insecure_allowed=True)), known, strangers)
    server = grpc.server(pool, interceptors=(keeper,))
    service = MetricsService(SimpleNamespace(metrics=control.metrics))
    service.add_to(server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield control, pool, MetricsStub(channel)  # type: ignore[no-untyped-call]  # generated
    control.release.set()
    service.close()
    server.stop(0).wait()
    for share in (known, strangers):
        share.pool.shutdown()
    keeper.close()


@pytest.mark.thorough
def test_too_many_at_a_time(slow: tuple[Slow, WorkPool, Any]) -> None:
    """Excess calls are refused with RESOURCE_EXHAUSTED at once; waiting calls are served unless cancelled."""
    control, pool, stub = slow
    ask = metrics_pb.GetMetricsRequest()
    watched = stub.Watch(metrics_pb.WatchMetricsRequest(interval_ms=INTERVAL_MS_MAX), timeout=CALL_S)  # requests once
    running = [stub.GetText.future(ask, timeout=CALL_S) for _ in range(2)]
    for _ in range(3):
        assert control.entered.acquire(timeout=CALL_S)
    waiting = stub.GetText.future(ask, timeout=CALL_S)
    hurried = stub.GetText.future(ask, timeout=HURRY_S)
    pause = threading.Event()
    while pool.waiting < 2 and not hurried.done():
        pause.wait(0.01)
    with pytest.raises(grpc.RpcError, match="2 calls are already waiting at this admin port") as refused:
        stub.GetText(ask, timeout=CALL_S)
    assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    with pytest.raises(grpc.RpcError) as late:
        hurried.result()
    assert late.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    for _ in range(200):  # the server's clock for that call started when it arrived: wait until that has expired, too
        with contextlib.suppress(grpc.RpcError):
            stub.GetText(ask, timeout=CALL_S)
    watched.cancel()
    control.release.set()
    assert [one.result().text for one in (*running, waiting)] == [""] * 3
    assert control.asked == 4  # the caller of the short one had given up

    def watch() -> Any:
        return next(one := stub.Watch(metrics_pb.WatchMetricsRequest(interval_ms=100), timeout=CALL_S)) and one

    first = None
    while first is None:
        with contextlib.suppress(grpc.RpcError):  # until the thread of the previous stream has noticed its end
            first = watch()
    with pytest.raises(grpc.RpcError, match="all 1 streams"):
        watch()
    first.cancel()
