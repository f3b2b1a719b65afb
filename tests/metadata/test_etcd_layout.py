"""The keys and values of Apache BookKeeper's driver for etcd, literally.

`JAVA` is what that driver, compiled from the source of release 4.18.0, left in etcd: `bookkeeper shell initnewcluster`,
a bookie, and a client that created a ledger. The names of the host and of directories are replaced by others.
"""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest

from bookie.metadata import open_driver
from bookie.metadata.etcd.driver import EtcdDriver
from bookie.metadata.etcd.endpoints import Endpoints, EtcdAccess
from bookie.metadata.records.ledger_codec import parse_ledger, serialize_ledger
from bookie.metadata.records.ledger_metadata import DigestType, LedgerMetadata, LedgerState, Segment
from bookie.pb import etcd_pb2 as pb
from tests.fixtures.etcd import EtcdCluster
from tests.metadata.conftest import EtcdScope

pytestmark = pytest.mark.leaks("gRPC keeps threads of its own for the life of the process")

INSTANCE = "19b044df-7817-4559-965d-ef6fe777196e"
COOKIE = (
    b'5\nbookieHost: "127.0.0.1:31657"\njournalDir: "/data/journal"\nledgerDirs: "1\\t/data/ledgers"\n'
    b'instanceId: "19b044df-7817-4559-965d-ef6fe777196e"\n'
)
LEDGER = 7854277750134145025
OPEN = (
    b"BookieMetadataFormatVersion\t3\nX\x08\x03\x10\x03\x18\x00 \xff\xff\xff\xff\xff\xff\xff\xff\xff\x01(\x0125\n\x0f"
    b"127.0.0.1:31657\n\x0f127.0.0.1:31331\n\x0f127.0.0.1:28546\x10\x008\x03B\x06secretH\x02`\x00"
)
JAVA = {
    "": b"",
    "/bookies": b"",
    "/bookies/readonly": b"",
    "/bookies/writable": b"",
    "/bookies/writable/127.0.0.1:31657": b"",
    "/buckets": b"",
    "/buckets/109": b"",
    "/cookies": b"",
    "/cookies/127.0.0.1:31657": COOKIE,
    "/instanceid": INSTANCE.encode(),
    "/layout": b"2\norg.apache.bookkeeper.metadata.etcd.EtcdLedgerManagerFactory:0",
    "/ledgers": b"",
    "/ledgers/00000000-0000-0000-6d00-000000000001": OPEN,
    "/underreplication": b"",
}
METADATA = LedgerMetadata(
    ensemble_size=3,
    write_quorum=3,
    ack_quorum=2,
    segments=(Segment(0, ("127.0.0.1:31657", "127.0.0.1:31331", "127.0.0.1:28546")),),
    digest_type=DigestType.CRC32C,
    password=b"secret",
)


class Raw:
    """etcd itself."""

    def __init__(self, members: Endpoints) -> None:
        self._members = members

    def put(self, values: dict[str, bytes]) -> None:
        """Put keys in one transaction."""
        puts = [pb.PutRequest(key=key.encode(), value=value) for key, value in values.items()]
        self._members.call("KV/Txn", pb.TxnRequest(success=[pb.RequestOp(request_put=one) for one in puts]), 10)

    def keys(self, scope: str) -> dict[str, bytes]:
        """Return all keys of a scope without it, and their values."""
        request = pb.RangeRequest(key=scope.encode(), range_end=f"{scope}0".encode())
        return {kv.key.decode().removeprefix(scope): kv.value for kv in self._members.call("KV/Range", request, 10).kvs}


@pytest.fixture
def raw(etcd: EtcdCluster) -> Iterator[Raw]:
    """Requests beside the driver."""
    with closing(Endpoints((etcd.members[0].address,), EtcdAccess())) as members:
        yield Raw(members)


@pytest.fixture
def java_cluster(etcd: EtcdCluster, raw: Raw) -> Iterator[tuple[EtcdDriver, str]]:
    """Our driver on a cluster that Java's created and used, and its scope."""
    scope = etcd.new_scope()
    raw.put({f"{scope}{key}": value for key, value in JAVA.items()})
    driver = open_driver(f"etcd://{etcd.addresses}{scope}")
    assert isinstance(driver, EtcdDriver)
    driver.start()
    yield driver, scope
    driver.stop()


def test_a_cluster_of_javas_driver_is_read(java_cluster: tuple[EtcdDriver, str]) -> None:
    """The instance id, a bookie and its cookie, a ledger, and the number of ids that were taken."""
    driver, _ = java_cluster
    assert driver.cluster.is_initialized()
    assert driver.cluster.instance_id() == INSTANCE
    assert driver.bookies.present(read_only=False) == {"127.0.0.1:31657"}
    assert driver.bookies.present(read_only=True) == frozenset()
    assert driver.bookies.info("127.0.0.1:31657") == b""
    cookie = driver.cookies.read("127.0.0.1:31657")
    assert cookie is not None
    assert cookie[0] == COOKIE
    assert [ledger for page in driver.ledgers.ranges() for ledger in page] == [LEDGER]
    assert driver.ledgers.read(LEDGER).value == METADATA
    assert driver.ledgers.last_id() == LEDGER
    assert driver.ledgers.new_id() == 1


def test_what_javas_driver_wrote_is_written_again_in_the_same_bytes(
    java_cluster: tuple[EtcdDriver, str], raw: Raw
) -> None:
    """A change and the change back leave the ledger's bytes as Java had written them; other keys stay as they are."""
    driver, scope = java_cluster
    assert serialize_ledger(parse_ledger(LEDGER, OPEN)) == OPEN
    found = driver.ledgers.read(LEDGER)
    changed = driver.ledgers.write(LEDGER, replace(found.value, state=LedgerState.IN_RECOVERY), found.version)
    driver.ledgers.write(LEDGER, found.value, changed.version)
    assert raw.keys(scope) == JAVA


def test_our_cluster_has_the_keys_of_javas(etcd_scope: EtcdScope, raw: Raw) -> None:
    """The same steps with our driver: every key that Java's wrote, with its value, and besides only what is ours."""
    driver = etcd_scope.connect()
    instance_id = driver.cluster.instance_id()
    assert instance_id is not None
    driver.cookies.write("127.0.0.1:31657", COOKIE, None)
    driver.registrations.register("127.0.0.1:31657", b"", read_only=False)
    assert driver.ledgers.new_id() == 1
    driver.ledgers.create(LEDGER, METADATA)
    created = driver.ledgers.read(LEDGER)
    driver.ledgers.write(LEDGER, created.value, created.version)  # Java writes no token
    expected = {**JAVA, "/instanceid": instance_id.encode(), "/buckets/000": b""}
    del expected["/buckets/109"]
    assert isinstance(driver, EtcdDriver)
    mark = f"/sessions/{driver.store.session():016x}"
    assert raw.keys(etcd_scope.scope) == {**expected, mark: b""}


@pytest.mark.parametrize(
    ("ledger", "key"),
    [
        (0, "00000000-0000-0000-0000-000000000000"),
        (0x1234, "00000000-0000-0000-0000-000000001234"),
        (0x6D00000000000001, "00000000-0000-0000-6d00-000000000001"),
        ((1 << 63) - 1, "00000000-0000-0000-7fff-ffffffffffff"),
    ],
)
def test_the_key_of_a_ledger(etcd_scope: EtcdScope, raw: Raw, ledger: int, key: str) -> None:
    """`EtcdUtils.getLedgerKey`: `new UUID(0, ledger)` below `ledgers`."""
    etcd_scope.connect().ledgers.create(ledger, METADATA)
    assert [one for one in raw.keys(etcd_scope.scope) if one.startswith("/ledgers/")] == [f"/ledgers/{key}"]


@pytest.mark.parametrize(
    ("bucket", "puts", "last"), [(0, 3, 3), (7, 2, 0x0700000000000002), (127, 1, (0x7F << 56) | 1)]
)
def test_the_ids_of_a_bucket(etcd_scope: EtcdScope, raw: Raw, bucket: int, puts: int, last: int) -> None:
    """`Etcd64bitIdGenerator`: the bucket in the highest 8 bits, and below them how often `buckets/%03d` was put."""
    for _ in range(puts):
        raw.put({f"{etcd_scope.scope}/buckets/{bucket:03d}": b""})
    assert etcd_scope.connect().ledgers.last_id() == last


@pytest.mark.parametrize("read_only", [False, True])
def test_the_key_of_a_bookie(etcd_scope: EtcdScope, raw: Raw, *, read_only: bool) -> None:
    """`getWritableBookiePath` and `getReadonlyBookiePath`; Java deletes the key of the other mode, and so do we."""
    driver = etcd_scope.connect()
    driver.registrations.register("10.0.0.1:3181", b"", read_only=not read_only)
    driver.registrations.register("10.0.0.1:3181", b"", read_only=read_only)
    mode = "readonly" if read_only else "writable"
    registered = [key for key in raw.keys(etcd_scope.scope) if key.startswith("/bookies/") and key.count("/") == 3]
    assert registered == [f"/bookies/{mode}/10.0.0.1:3181"]
