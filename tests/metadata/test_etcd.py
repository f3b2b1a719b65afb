"""The metadata store in etcd: keys of Apache BookKeeper's driver, lost members, compaction, leases, TLS and users."""

import socket
import threading
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path

import grpc
import pytest

from bookie.errors import (
    ClusterNotInitialized,
    ConfigurationError,
    IncorrectParameter,
    MetadataSerializationError,
    MetadataStoreError,
    SecurityError,
)
from bookie.local.etcd import etcd_program
from bookie.metadata import open_driver
from bookie.metadata.driver import MetadataDriver
from bookie.metadata.etcd import endpoints
from bookie.metadata.etcd.driver import EtcdDriver
from bookie.metadata.etcd.endpoints import Endpoints, EtcdAccess
from bookie.metadata.key_value.keys import VALUE_BYTES_MAX, StoreFull
from bookie.metadata.records.ledger_codec import parse_ledger
from bookie.metadata.records.ledger_metadata import LedgerMetadata, Segment
from bookie.metadata.uri import parse_uri
from bookie.pb import etcd_pb2 as pb
from tests.fixtures.certificates import Authority
from tests.fixtures.etcd import EtcdCluster, EtcdMember
from tests.fixtures.ports import free_port
from tests.metadata.conftest import EtcdScope
from tests.metadata.seen import Seen

pytestmark = pytest.mark.leaks("gRPC keeps threads of its own for the life of the process")

METADATA = LedgerMetadata(ensemble_size=1, write_quorum=1, ack_quorum=1, segments=(Segment(0, ("a:3181",)),))
TIMEOUT_MS = 3000


@pytest.fixture
def raw(etcd: EtcdCluster) -> Iterator[Endpoints]:
    """Requests of etcd's own, beside the driver."""
    with closing(Endpoints((etcd.members[0].address,), EtcdAccess())) as made:
        yield made


def stored(raw: Endpoints, scope: str) -> dict[str, bytes]:
    """Return all keys of a scope with their values; its own key has an empty name."""
    request = pb.RangeRequest(key=scope.encode(), range_end=f"{scope}0".encode())
    return {kv.key.decode().removeprefix(scope): kv.value for kv in raw.call("KV/Range", request, 5).kvs}


def test_the_keys_of_a_new_cluster(etcd_scope: EtcdScope, raw: Endpoints) -> None:
    """A new cluster has the keys that Apache BookKeeper's driver creates and checks."""
    keys = stored(raw, etcd_scope.scope)
    instance_id = keys.pop("/instanceid").decode()
    assert instance_id == str(uuid.UUID(instance_id))
    assert keys.pop("/layout") == b"2\norg.apache.bookkeeper.metadata.etcd.EtcdLedgerManagerFactory:0"
    folders = ["", "/cookies", "/bookies", "/bookies/writable", "/bookies/readonly", "/ledgers", "/buckets",
               "/underreplication"]  # fmt: skip
    assert keys == dict.fromkeys(folders, b"")


def test_the_keys_of_a_cluster_in_use(etcd_scope: EtcdScope, raw: Endpoints) -> None:
    """Ledgers, ids, cookies and registrations are where Apache BookKeeper's driver has them."""
    driver = etcd_scope.connect()
    assert [driver.ledgers.new_id() for _ in range(3)] == [1, 2, 3]
    for ledger in (2, (1 << 63) - 1):
        driver.ledgers.create(ledger, METADATA)
    driver.cookies.write("a:3181", b"cookie", None)
    driver.registrations.register("a:3181", b"", read_only=False)
    keys = stored(raw, etcd_scope.scope)
    assert keys["/buckets/000"] == b""
    assert keys["/cookies/a:3181"] == b"cookie"
    assert keys["/bookies/writable/a:3181"] == b""
    assert parse_ledger(2, keys["/ledgers/00000000-0000-0000-0000-000000000002"]).ensemble_size == 1
    assert "/ledgers/00000000-0000-0000-7fff-ffffffffffff" in keys
    driver.registrations.register("a:3181", b"", read_only=True)
    keys = stored(raw, etcd_scope.scope)
    assert "/bookies/readonly/a:3181" in keys
    assert "/bookies/writable/a:3181" not in keys


def test_what_the_other_driver_wrote_is_read(etcd_scope: EtcdScope, raw: Endpoints) -> None:
    """Ids of other buckets, registrations without a value, and ledgers of other scopes of ids."""
    driver = etcd_scope.connect()
    far = (0x7F << 56) | 5
    value = stored_ledger(driver)
    for key, text in {
        f"ledgers/{uuid.UUID(int=far)}": value,
        f"ledgers/{uuid.UUID(int=(1 << 64) | 7)}": value,
        "ledgers/something-else": b"",
        "bookies/writable/java:3181": b"",
    }.items():
        put = pb.PutRequest(key=f"{etcd_scope.scope}/{key}".encode(), value=text)
        raw.call("KV/Txn", pb.TxnRequest(success=[pb.RequestOp(request_put=put)]), 5)
    assert [ledger for page in driver.ledgers.ranges() for ledger in page] == [far]
    assert driver.ledgers.read(far).value.ensemble_size == 1
    assert driver.bookies.present(read_only=False) == {"java:3181"}
    assert driver.bookies.info("java:3181") == b""


def stored_ledger(driver: MetadataDriver) -> bytes:
    """Return the bytes of a ledger's metadata, as they are stored."""
    driver.ledgers.create(1, METADATA)
    assert isinstance(driver, EtcdDriver)
    item = driver.store.get(f"ledgers/{uuid.UUID(int=1)}")
    driver.ledgers.delete(1)
    assert item is not None
    return item.value


def test_a_cluster_next_door_stays(etcd_scope: EtcdScope, etcd: EtcdCluster) -> None:
    """Destroying a cluster leaves one whose scope begins with the same text."""
    neighbour = open_driver(f"etcd://{etcd.addresses}{etcd_scope.scope}-2/deep")
    with closing(Started(neighbour)):
        neighbour.cluster.initialize()
        etcd_scope.connect().cluster.destroy()
        assert neighbour.cluster.is_initialized()


class Started:
    """A driver that is started here, and stopped by `close`."""

    def __init__(self, driver: MetadataDriver) -> None:
        self.driver = driver
        driver.start()

    def close(self) -> None:
        """Stop it."""
        self.driver.stop()


def test_another_layout_is_refused(etcd_scope: EtcdScope, raw: Endpoints) -> None:
    """A scope with another ledger manager, or with no cluster, is not touched."""
    driver = etcd_scope.connect()
    put = pb.PutRequest(key=f"{etcd_scope.scope}/layout".encode(), value=b"2\nsomething.Else:0")
    raw.call("KV/Txn", pb.TxnRequest(success=[pb.RequestOp(request_put=put)]), 5)
    with pytest.raises(MetadataSerializationError, match="Else"):
        driver.cluster.instance_id()
    driver.cluster.destroy()
    with pytest.raises(ClusterNotInitialized):
        driver.cluster.instance_id()


@pytest.mark.parametrize("how", ["kill", pytest.param("freeze", marks=pytest.mark.thorough)])
def test_one_of_three_members_is_lost(three_etcds: EtcdCluster, how: str) -> None:
    """Whichever member is lost or hangs: calls and watches go on, and nobody loses a registration without being told.

    etcd before 3.5.13 may end leases when a leader that hung comes back.
    """
    uri = f"etcd://{three_etcds.addresses}/ledgers"
    ours, theirs = open_driver(uri), open_driver(uri)
    with closing(Started(ours)), closing(Started(theirs)):
        ours.cluster.initialize()
        lost = threading.Event()
        ours.registrations.on_session_loss(lost.set)
        ours.registrations.register("a:3181", b"info", read_only=False)
        seen = Seen()
        theirs.ledgers.watch(7, seen)
        seen.wait_equal(None)
        version = ours.ledgers.create(7, METADATA).version
        for member in three_etcds.members:
            member.kill() if how == "kill" else member.freeze()
            version = ours.ledgers.write(7, METADATA, version).version
            seen.wait_for(lambda found: found is not None and found.version == version, "the write")  # noqa: B023
            member.restart() if how == "kill" else member.thaw()
        if not ours.registrations.is_registered("a:3181", read_only=False):
            assert lost.wait(60)
            ours.registrations.register("a:3181", b"info", read_only=False)
        assert theirs.bookies.present(read_only=False) == {"a:3181"}


@pytest.mark.thorough
def test_without_a_majority_calls_end_in_time(three_etcds: EtcdCluster) -> None:
    """A call ends with an error at the session timeout, and calls work again as soon as there is a majority."""
    driver = open_driver(f"etcd://{three_etcds.addresses}/ledgers", session_timeout_ms=TIMEOUT_MS)
    with closing(Started(driver)):
        driver.cluster.initialize()
        first, second, _ = three_etcds.members
        first.kill()
        second.kill()
        with pytest.raises(MetadataStoreError, match="did not answer within 3 s"):
            driver.ledgers.create(7, METADATA)
        second.relaunch()
        deadline = time.monotonic() + 60
        while True:
            try:
                driver.cluster.is_initialized()
                break
            except MetadataStoreError:
                assert time.monotonic() < deadline


@pytest.mark.thorough
def test_a_watch_resumes_after_a_compaction(three_etcds: EtcdCluster) -> None:
    """A watcher that was cut off while changes were made and compacted sees the present state, and the next change."""
    uri = f"etcd://{three_etcds.addresses}/ledgers"
    reader = open_driver(f"etcd://{three_etcds.members[0].address}/ledgers", session_timeout_ms=20_000)
    writer = open_driver(uri)
    with closing(Started(writer)), closing(Started(reader)):
        writer.cluster.initialize()
        version = writer.ledgers.create(7, METADATA).version
        seen = Seen()
        reader.ledgers.watch(7, seen)
        seen.wait_for(lambda found: found is not None, "the ledger")
        three_etcds.members[0].kill()
        for _ in range(3):
            version = writer.ledgers.write(7, METADATA, version).version
        with closing(Endpoints((three_etcds.members[1].address,), EtcdAccess())) as raw:
            raw.call("KV/Compact", pb.CompactionRequest(revision=version), 10)
        three_etcds.members[0].restart()
        seen.wait_for(lambda found: found is not None and found.version == version, "what was compacted")
        version = writer.ledgers.write(7, METADATA, version).version
        seen.wait_for(lambda found: found is not None and found.version == version, "the next change")


@pytest.mark.thorough
def test_a_watch_catches_up_with_large_values(three_etcds: EtcdCluster) -> None:
    """More bytes of changes than one message may have do not stop a watch that was cut off meanwhile."""
    reader = open_driver(f"etcd://{three_etcds.members[0].address}/ledgers", session_timeout_ms=20_000)
    writer = open_driver(f"etcd://{three_etcds.addresses}/ledgers")
    with closing(Started(writer)), closing(Started(reader)):
        writer.cluster.initialize()
        seen = Seen()
        reader.ledgers.watch(7, seen)
        seen.wait_equal(None)
        three_etcds.members[0].kill()
        for number in range(24):
            writer.cookies.write(f"bookie-{number}", bytes(VALUE_BYTES_MAX), None)
        version = writer.ledgers.create(7, METADATA).version
        three_etcds.members[0].restart()
        seen.wait_for(lambda found: found is not None and found.version == version, "the ledger")


def test_a_lost_lease_is_a_lost_session(etcd_scope: EtcdScope, raw: Endpoints) -> None:
    """A lease that is gone: the registration is gone for everybody, the listener is called, and a new session works."""
    driver, other = etcd_scope.connect(session_timeout_ms=2000), etcd_scope.connect()
    lost = threading.Event()
    driver.registrations.on_session_loss(lost.set)
    driver.registrations.register("a:3181", b"", read_only=False)
    assert isinstance(driver, EtcdDriver)
    driver.ledgers.create(1, METADATA)
    old = driver.store.session()
    raw.call("Lease/LeaseRevoke", pb.LeaseRevokeRequest(id=old), 5)
    driver.ledgers.create(2, METADATA)  # waits for the new session
    assert driver.ledgers.read(2).value.ensemble_size == 1
    assert other.bookies.present(read_only=False) == frozenset()
    assert lost.wait(60)
    assert driver.store.session() != old
    assert not driver.registrations.is_registered("a:3181", read_only=False)
    driver.registrations.register("a:3181", b"", read_only=False)
    assert other.bookies.present(read_only=False) == {"a:3181"}


def test_a_lease_that_a_leader_does_not_know_is_ended(etcd_scope: EtcdScope, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new leader may say that a lease is gone which lives: nothing of the lost session is left when it is told."""
    driver, other = etcd_scope.connect(session_timeout_ms=8000), etcd_scope.connect()
    assert isinstance(driver, EtcdDriver)
    old = driver.store.session()
    driver.registrations.register("a:3181", b"", read_only=False)
    present: list[frozenset[str]] = []
    lost = threading.Event()
    driver.registrations.on_session_loss(lambda: present.append(other.bookies.present(read_only=False)))
    driver.registrations.on_session_loss(lost.set)
    exchange = Endpoints.exchange

    def deny(self: Endpoints, method: str, request: pb.LeaseKeepAliveRequest, timeout: float) -> object:
        if request.id == old:
            return pb.LeaseKeepAliveResponse(id=old, ttl=0)
        return exchange(self, method, request, timeout)

    monkeypatch.setattr(Endpoints, "exchange", deny)
    assert lost.wait(60)
    assert present == [frozenset()]
    driver.registrations.register("a:3181", b"", read_only=False)
    assert other.bookies.present(read_only=False) == {"a:3181"}


def test_a_stream_that_ends_at_once_is_an_error() -> None:
    """A member that ends the call which keeps a lease, without a word: the thread of the session gets an error."""

    def silent(requests: Iterator[object], context: object) -> Iterator[bytes]:
        yield from ()

    handlers = {"LeaseKeepAlive": grpc.stream_stream_rpc_method_handler(silent)}
    server = grpc.server(ThreadPoolExecutor(2))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("etcdserverpb.Lease", handlers),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        with (
            closing(Endpoints((f"127.0.0.1:{port}",), EtcdAccess())) as member,
            pytest.raises(MetadataStoreError, match="without a response"),
        ):
            member.exchange("Lease/LeaseKeepAlive", pb.LeaseKeepAliveRequest(id=1), 10)
    finally:
        server.stop(None).wait()


def test_a_bad_address_is_a_clear_error() -> None:
    """Nobody listens: the error names the addresses and the key to look at."""
    port = free_port()
    driver = open_driver(f"etcd://127.0.0.1:{port}/ledgers", session_timeout_ms=500)
    with pytest.raises(MetadataStoreError, match=rf"etcd at 127.0.0.1:{port} did not answer.*metadataServ"):
        driver.start()
    driver.stop()


@pytest.fixture
def secure(tmp_path: Path) -> Iterator[tuple[EtcdCluster, Authority]]:
    """A member with TLS that demands certificates of its clients."""
    program = etcd_program()
    if program is None:
        pytest.skip("there is no etcd")
    ca = Authority(tmp_path / "ca")
    party = ca.issue("etcd", hosts=["127.0.0.1"])
    options = ["--cert-file", str(party.certificate), "--key-file", str(party.key), "--client-cert-auth",
               "--trusted-ca-file", str(ca.certificate), "--log-level", "info"]  # fmt: skip
    made = EtcdCluster([EtcdMember(program, tmp_path / "etcd", options, scheme="https")])
    made.start()
    yield made, ca
    made.kill()


def test_tls(secure: tuple[EtcdCluster, Authority]) -> None:
    """etcds with a certificate works; without one, or without TLS, nothing is read."""
    etcd, ca = secure
    client = ca.issue("client")
    uri = f"etcds://{etcd.addresses}/ledgers?ca={ca.certificate}"
    driver = open_driver(f"{uri}&certificate={client.certificate}&key={client.key}")
    with closing(Started(driver)):
        driver.cluster.initialize()
        assert driver.ledgers.create(7, METADATA).value.ensemble_size == 1
    for wrong in (uri, f"etcd://{etcd.addresses}/ledgers"):
        refused = open_driver(wrong, session_timeout_ms=1000)
        with pytest.raises(MetadataStoreError):
            refused.start()


def test_tls_files_that_change(secure: tuple[EtcdCluster, Authority], monkeypatch: pytest.MonkeyPatch) -> None:
    """All certificates are replaced by those of another authority: calls and watches of a running driver go on.

    One file is empty meanwhile, which the driver says.
    """
    etcd, ca = secure
    logged = Seen()
    monkeypatch.setattr(endpoints.log, "warning", lambda text, *values: logged(text % values))
    client = ca.issue("client")
    access = f"ca={ca.certificate}&certificate={client.certificate}&key={client.key}"
    driver = open_driver(f"etcds://{etcd.addresses}/ledgers?{access}", session_timeout_ms=60_000)
    with closing(Started(driver)):
        driver.cluster.initialize()
        seen = Seen()
        driver.ledgers.watch(7, seen)
        seen.wait_equal(None)
        etcd.members[0].kill()
        client.key.write_bytes(b"")  # for a moment, as a program does that writes it anew
        logged.wait_for(lambda said: "cannot read the files for TLS again" in said, "that the key is not whole")
        other = Authority(ca.directory, "another authority")
        other.issue("client")
        other.issue("etcd", hosts=["127.0.0.1"])
        etcd.members[0].restart()
        created = driver.ledgers.create(7, METADATA)
        seen.wait_for(lambda found: found is not None and found.version == created.version, "the ledger")


def test_users(three_etcds: EtcdCluster, tmp_path: Path) -> None:
    """A user with a role for the scope works, also after its token became stale; others are told what is missing."""
    password = tmp_path / "password"
    password.write_text("a-password\n")
    password.chmod(0o600)
    wrong = tmp_path / "wrong"
    wrong.write_text("another")
    wrong.chmod(0o600)
    control = three_etcds.control
    control("user", "add", "root:root")
    control("user", "grant-role", "root", "root")
    control("role", "add", "bookies")
    control("role", "grant-permission", "bookies", "--prefix=true", "readwrite", "/ledgers")
    control("user", "add", "bookie:a-password")
    control("user", "grant-role", "bookie", "bookies")
    control("auth", "enable")
    uri = f"etcd://{three_etcds.addresses}/ledgers"
    driver = open_driver(f"{uri}?user=bookie&password={password}")
    with closing(Started(driver)):
        driver.cluster.initialize()
        seen = Seen()
        driver.ledgers.watch(7, seen)
        created = driver.ledgers.create(7, METADATA)
        control("--user", "root:root", "role", "add", "more")  # tokens of before are no longer accepted
        written = driver.ledgers.write(7, created.value, created.version)
        seen.wait_for(lambda found: found is not None and found.version == written.version, "the write")
        for member in three_etcds.members:  # each forgets the tokens, as after they have expired
            member.kill()
            member.restart()
        written = driver.ledgers.write(7, created.value, written.version)
        seen.wait_for(lambda found: found is not None and found.version == written.version, "the second write")
    for options, what in (
        ("", "requires a login: append .user=NAME"),
        (f"?user=bookie&password={wrong}", "refuses the user 'bookie'"),
    ):
        with pytest.raises(SecurityError, match=what):
            open_driver(uri + options).start()
    elsewhere = open_driver(f"etcd://{three_etcds.addresses}/others?user=bookie&password={password}")
    with pytest.raises(SecurityError, match="permission denied"):
        elsewhere.start()


def fill(driver: MetadataDriver) -> None:
    """Write 20 MB."""
    for number in range(100):
        driver.cookies.write(f"bookie-{number}", bytes(200_000), None)


@pytest.mark.thorough
def test_a_full_store_says_so(tmp_path: Path) -> None:
    """etcd's database has reached its quota: a write is refused with etcd's own words, and reads go on."""
    program = etcd_program()
    if program is None:
        pytest.skip("there is no etcd")
    etcd = EtcdCluster([EtcdMember(program, tmp_path / "etcd", ["--quota-backend-bytes", str(2 << 20)])])
    etcd.start()
    driver = open_driver(f"etcd://{etcd.addresses}/ledgers")
    try:
        with closing(Started(driver)):
            driver.cluster.initialize()
            with pytest.raises(StoreFull, match="space exceeded"):
                fill(driver)
            assert driver.cookies.read("bookie-0") is not None
    finally:
        etcd.kill()


def test_the_largest_values(etcd_scope: EtcdScope) -> None:
    """A ledger with many ensembles, near etcd's limit of 1.5 MiB; above it, the error names the option to raise."""
    driver, other = etcd_scope.connect(), etcd_scope.connect()
    bookies = ("10.0.0.1:3181", "10.0.0.2:3181", "10.0.0.3:3181")
    segments = tuple(Segment(entry, bookies) for entry in range(200_000))

    def metadata(count: int) -> LedgerMetadata:
        return LedgerMetadata(ensemble_size=3, write_quorum=3, ack_quorum=2, segments=segments[:count])

    seen = Seen()
    other.ledgers.watch(7, seen)
    version = driver.ledgers.create(7, metadata(10_000)).version
    version = driver.ledgers.write(7, metadata(29_000), version).version
    told = seen.wait_for(lambda found: found is not None and found.version == version, "the large value")
    assert told.value.segments == other.ledgers.read(7).value.segments == segments[:29_000]
    for count in (33_000, 200_000):  # refused by etcd, and by its gRPC
        with pytest.raises(IncorrectParameter, match=r"larger than etcd accepts .*max-request-bytes"):
            driver.ledgers.write(7, metadata(count), version)
    assert other.ledgers.read(7).version == version


def test_members_that_never_answer(etcd: EtcdCluster) -> None:
    """Three of four addresses accept connections and say nothing: the driver starts, changes and watches."""
    with ExitStack() as stack:
        silent = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(3)]
        addresses = [f"127.0.0.1:{one.getsockname()[1]}" for one in silent]
        uri = f"etcd://{','.join([*addresses, etcd.addresses])}{etcd.new_scope()}"
        driver = stack.enter_context(closing(Started(open_driver(uri, session_timeout_ms=TIMEOUT_MS)))).driver
        driver.cluster.initialize()
        seen = Seen()
        driver.ledgers.watch(7, seen)
        created = driver.ledgers.create(7, METADATA)
        seen.wait_for(lambda found: found is not None and found.version == created.version, "the ledger")


@pytest.mark.parametrize(
    ("uri", "what"),
    [
        ("etcd://h:2379", "names no ledgers root"),
        ("etcd:///ledgers", "names no host"),
        ("etcd://h/ledgers?ca=x", "ca=x is not one of user=NAME, password=FILE"),
        ("etcd://h/ledgers?user=x", "user and password come together"),
        ("etcds://h/ledgers?certificate=x", "certificate and key come together"),
        ("etcd+hierarchical://h/ledgers", "only zk has layouts"),
    ],
)
def test_uris_that_are_refused(uri: str, what: str) -> None:
    """The error names what is missing."""
    with pytest.raises(ConfigurationError, match=what):
        parse_uri(uri)


def test_uris() -> None:
    """Several hosts, the default port, and IPv6."""
    assert parse_uri("etcd://a,b:23;[::1]/s/t/").hosts == ("a:2379", "b:23", "[::1]:2379")
    assert parse_uri("etcd://a/s/t/").path == "/s/t"
