"""What every metadata store must do: the contract of `bookie.metadata.driver`, on each of them."""

import threading
import uuid
from dataclasses import replace

import pytest

from bookie.errors import (
    BookieAlreadyRegistered,
    IllegalOperation,
    IncorrectParameter,
    LedgerExists,
    LedgerIdOverflow,
    MetadataSerializationError,
    MetadataVersionConflict,
    NoSuchLedgerMetadata,
)
from bookie.metadata.bookies.service_info import BookieServiceInfo, bookie_endpoint, parse_service_info
from bookie.metadata.records.ledger_metadata import DigestType, LedgerMetadata, LedgerState, Segment
from tests.metadata.conftest import Cluster
from tests.metadata.seen import Seen

pytestmark = pytest.mark.leaks("gRPC keeps threads of its own for the life of the process")

METADATA = LedgerMetadata(
    ensemble_size=2,
    write_quorum=2,
    ack_quorum=1,
    segments=(Segment(0, ("b:3181", "a:3181")),),
    digest_type=DigestType.CRC32C,
    password=b"secret",
    custom={"app": b"test"},
)
BOOKIE = "10.0.0.5:3181"
INFO = BookieServiceInfo((bookie_endpoint("10.0.0.5", 3181),), {"a": "b"}).to_bytes()


def test_a_cluster_is_initialized_once(cluster: Cluster) -> None:
    """The instance id is a UUID that every client reads; a second initialization is refused and changes nothing."""
    driver = cluster.connect()
    instance_id = driver.cluster.instance_id()
    assert instance_id == str(uuid.UUID(instance_id))
    assert driver.cluster.seen() == driver.cluster.seen()
    assert driver.cluster.seen().instance_id == instance_id
    assert driver.cluster.is_initialized()
    with pytest.raises(IllegalOperation):
        driver.cluster.initialize()
    assert cluster.connect().cluster.instance_id() == instance_id


def test_health_checks_are_the_clusters_choice(cluster: Cluster) -> None:
    """Health checks are allowed until they are forbidden for all clients."""
    driver, other = cluster.connect(), cluster.connect()
    assert other.cluster.health_checks()
    for wanted in (False, False, True, True):
        driver.cluster.enable_health_checks(enabled=wanted)
        assert other.cluster.health_checks() is wanted


def test_a_cluster_is_destroyed_when_nobody_is_registered(cluster: Cluster) -> None:
    """Ledgers, cookies and the instance id are deleted; the next cluster is another one, and empty."""
    driver, other = cluster.connect(), cluster.connect()
    driver.ledgers.create(7, METADATA)
    driver.cookies.write(BOOKIE, b"cookie", None)
    other.registrations.register(BOOKIE, INFO, read_only=True)
    with pytest.raises(IllegalOperation, match="registered"):
        driver.cluster.destroy()
    other.registrations.unregister(BOOKIE)
    old = driver.cluster.instance_id()
    driver.cluster.destroy()
    assert not driver.cluster.is_initialized()
    assert driver.cluster.initialize() != old
    assert driver.bookies.known() == frozenset()
    assert not any(driver.ledgers.ranges())
    assert driver.ledgers.create(7, METADATA) == driver.ledgers.read(7)


def test_a_ledger_lives(cluster: Cluster) -> None:
    """A ledger is created, read by another client, replaced by version and deleted; each stale version is refused."""
    ours, theirs = cluster.connect(), cluster.connect()
    created = ours.ledgers.create(7, METADATA)
    assert created.value.token
    read = theirs.ledgers.read(7)
    assert read == created
    assert replace(read.value, token=0) == METADATA
    assert abs(read.created_ms - created.created_ms) == 0

    closed = replace(read.value, state=LedgerState.CLOSED, length=10, last_entry=4)
    written = theirs.ledgers.write(7, closed, read.version)
    assert written.version > created.version
    assert written.value.token == 0
    assert written.created_ms == created.created_ms
    assert ours.ledgers.read(7) == written
    with pytest.raises(MetadataVersionConflict, match="ledger 7"):
        ours.ledgers.write(7, closed, created.version)
    with pytest.raises(MetadataVersionConflict):
        ours.ledgers.delete(7, created.version)

    ours.ledgers.delete(7, written.version)
    with pytest.raises(NoSuchLedgerMetadata, match="ledger 7"):
        theirs.ledgers.read(7)
    with pytest.raises(NoSuchLedgerMetadata):
        theirs.ledgers.delete(7)
    with pytest.raises(NoSuchLedgerMetadata):
        theirs.ledgers.write(7, closed, written.version)


def test_a_ledger_id_is_given_once(cluster: Cluster) -> None:
    """Of many clients that create the same ledger one succeeds; the others get LedgerExists."""
    drivers = [cluster.connect() for _ in range(3)]
    start = threading.Barrier(len(drivers))
    outcomes: list[str] = []

    def create(driver: object) -> None:
        start.wait()
        try:
            driver.ledgers.create(3, METADATA)  # type: ignore[attr-defined]
            outcomes.append("created")
        except LedgerExists:
            outcomes.append("exists")

    threads = [threading.Thread(target=create, args=(driver,)) for driver in drivers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["created", "exists", "exists"]


def test_generated_ids_are_unique(cluster: Cluster) -> None:
    """Two clients that take ids at the same time never get the same one, and ids ascend for each."""
    drivers = [cluster.connect(), cluster.connect()]
    taken: dict[int, list[int]] = {0: [], 1: []}

    def take(number: int) -> None:
        taken[number].extend(drivers[number].ledgers.new_id() for _ in range(20))

    threads = [threading.Thread(target=take, args=(number,)) for number in taken]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({*taken[0], *taken[1]}) == 40
    assert all(ids == sorted(ids) for ids in taken.values())


def test_invalid_metadata_is_not_stored(cluster: Cluster) -> None:
    """A segment that does not fit the ensemble, and an id outside 63 bits, are refused; nothing is written."""
    driver = cluster.connect()
    with pytest.raises(MetadataSerializationError, match="segment at 0 has 1 bookies"):
        driver.ledgers.create(1, replace(METADATA, segments=(Segment(0, ("a:1",)),)))
    for ledger_id in (-1, 1 << 63):
        with pytest.raises(LedgerIdOverflow):
            driver.ledgers.create(ledger_id, METADATA)
    assert list(driver.ledgers.ranges()) == []


def test_ranges_list_every_ledger_in_order(cluster: Cluster) -> None:
    """B12: the list has exactly the ledgers that exist, ascending, also across short and long ids."""
    driver = cluster.connect()
    ids = [0, 1, 9999, 10_000, 2_147_483_646, 2_147_483_647, 1 << 33, 123_456_789_012_345, (1 << 63) - 1]
    for ledger_id in reversed(ids):
        driver.ledgers.create(ledger_id, METADATA)
    driver.ledgers.create(5, METADATA)
    driver.ledgers.delete(5)
    assert [ledger_id for part in driver.ledgers.ranges() for ledger_id in part] == ids


def test_a_ledger_is_watched(cluster: Cluster) -> None:
    """A watcher gets the present state, each later one, and the deletion; after close it gets nothing."""
    writer, reader = cluster.connect(), cluster.connect()
    seen = Seen()
    watch = reader.ledgers.watch(11, seen)
    seen.wait_equal(None)
    created = writer.ledgers.create(11, METADATA)
    seen.wait_equal(created)
    recovering = writer.ledgers.write(11, replace(METADATA, state=LedgerState.IN_RECOVERY), created.version)
    seen.wait_equal(recovering)
    writer.ledgers.delete(11)
    seen.wait_equal(None)
    watch.close()
    reported = len(seen.values)
    writer.ledgers.create(11, METADATA)
    other = Seen()
    reader.ledgers.watch(11, other)
    other.wait_for(lambda value: value is not None, "the new ledger")
    assert len(seen.values) == reported


def test_bookies_come_and_go(cluster: Cluster) -> None:
    """B20: others see a registered bookie's mode and service info; the registration ends with its session."""
    bookie, client = cluster.connect(), cluster.connect()
    writable, read_only = Seen(), Seen()
    client.bookies.watch(writable, read_only=False)
    client.bookies.watch(read_only, read_only=True)
    writable.wait_equal(frozenset())

    bookie.registrations.register(BOOKIE, INFO, read_only=False)
    writable.wait_equal(frozenset({BOOKIE}))
    assert client.bookies.present(read_only=False) == {BOOKIE}
    assert client.bookies.present(read_only=True) == frozenset()
    info = client.bookies.info(BOOKIE)
    assert info == INFO
    endpoint = parse_service_info(BOOKIE, info).client_endpoint()
    assert endpoint is not None
    assert (endpoint.host, endpoint.port) == ("10.0.0.5", 3181)
    assert bookie.registrations.is_registered(BOOKIE, read_only=False)
    assert not bookie.registrations.is_registered(BOOKIE, read_only=True)
    assert not client.registrations.is_registered(BOOKIE, read_only=False)

    bookie.registrations.register(BOOKIE, INFO, read_only=True)
    read_only.wait_equal(frozenset({BOOKIE}))
    writable.wait_equal(frozenset())
    assert bookie.registrations.is_registered(BOOKIE, read_only=True)
    assert client.bookies.info(BOOKIE) == INFO

    bookie.registrations.register(BOOKIE, INFO, read_only=False)
    bookie.registrations.unregister(BOOKIE)
    bookie.registrations.unregister(BOOKIE)
    writable.wait_equal(frozenset())
    read_only.wait_equal(frozenset())
    assert client.bookies.info(BOOKIE) is None


def test_a_bookie_is_never_absent_while_it_changes_mode(cluster: Cluster) -> None:
    """B20: the new mode is entered before the old one is left, so that one of the sets always has the bookie."""
    bookie, client = cluster.connect(), cluster.connect()
    bookie.registrations.register(BOOKIE, INFO, read_only=False)
    switches, enough = [False], threading.Event()
    pause = 0.001

    def switch() -> None:
        while not enough.is_set() or switches[-1]:
            switches.append(not switches[-1])
            bookie.registrations.register(BOOKIE, INFO, read_only=switches[-1])
            enough.wait(pause)

    thread = threading.Thread(target=switch)
    thread.start()
    looks = 0
    while looks < 20:
        number, entering = len(switches), switches[-1]
        # The list that a bookie leaves is read first, then the one that it enters: a bookie that is missing in the
        # first must be in the second within the same switch.
        absent = BOOKIE not in client.bookies.present(read_only=not entering)
        absent = absent and BOOKIE not in client.bookies.present(read_only=entering)
        if number == len(switches):
            looks += 1
            assert not absent, f"in neither set during switch {number} to read_only={entering}"
        else:
            pause = min(1.2 * pause, 0.1)  # on a slow machine two reads take longer than a switch
    enough.set()
    thread.join()
    assert bookie.registrations.is_registered(BOOKIE, read_only=False)


def test_an_id_belongs_to_one_session(cluster: Cluster) -> None:
    """While one session is registered another is refused with a remedy; later the waiting one is registered."""
    first, second = cluster.connect(), cluster.connect(session_timeout_ms=1000)
    first.registrations.register(BOOKIE, INFO, read_only=False)
    first.registrations.register(BOOKIE, INFO, read_only=False)
    with pytest.raises(BookieAlreadyRegistered, match=r"10\.0\.0\.5:3181 is registered by another process"):
        second.registrations.register(BOOKIE, INFO, read_only=False)
    with pytest.raises(BookieAlreadyRegistered):
        second.registrations.register(BOOKIE, INFO, read_only=True)
    assert first.registrations.is_registered(BOOKIE, read_only=False)

    third = cluster.connect(session_timeout_ms=15_000)
    waiting = threading.Thread(target=third.registrations.register, args=(BOOKIE, INFO), kwargs={"read_only": False})
    waiting.start()
    first.registrations.unregister(BOOKIE)
    waiting.join()
    assert third.registrations.is_registered(BOOKIE, read_only=False)


def test_registrations_end_with_the_driver(cluster: Cluster) -> None:
    """A stopped driver's bookie is unregistered at once; its cookie stays."""
    watcher = cluster.connect()
    bookie = cluster.connect()
    seen = Seen()
    watcher.bookies.watch(seen, read_only=True)
    bookie.registrations.register(BOOKIE, INFO, read_only=True)
    bookie.cookies.write(BOOKIE, b"text", None)
    seen.wait_equal(frozenset({BOOKIE}))
    bookie.stop()
    seen.wait_equal(frozenset())
    assert watcher.bookies.known() == {BOOKIE}


def test_cookies_are_versioned(cluster: Cluster) -> None:
    """B16: a cookie is created once, and replaced or removed only by a client that has read its latest version."""
    ours, theirs = cluster.connect(), cluster.connect()
    assert ours.cookies.read(BOOKIE) is None
    assert ours.bookies.known() == frozenset()
    first = ours.cookies.write(BOOKIE, b"one", None)
    with pytest.raises(MetadataVersionConflict, match="cookie of 10"):
        theirs.cookies.write(BOOKIE, b"two", None)
    assert theirs.cookies.read(BOOKIE) == (b"one", first)
    second = theirs.cookies.write(BOOKIE, b"two", first)
    assert second > first
    with pytest.raises(MetadataVersionConflict):
        ours.cookies.write(BOOKIE, b"three", first)
    with pytest.raises(MetadataVersionConflict):
        ours.cookies.remove(BOOKIE, first)
    assert ours.bookies.known() == {BOOKIE}
    ours.cookies.remove(BOOKIE, second)
    with pytest.raises(MetadataVersionConflict):
        theirs.cookies.remove(BOOKIE)
    assert theirs.cookies.read(BOOKIE) is None


def test_start_and_stop_are_idempotent(cluster: Cluster) -> None:
    """Calling either twice changes nothing."""
    driver = cluster.connect()
    driver.start()
    assert driver.cluster.is_initialized()
    other = cluster.connect()
    other.stop()
    other.stop()


def test_a_ledger_is_copied_by_one_at_a_time(cluster: Cluster) -> None:
    """A replication lock is exclusive, and ends with its block."""
    ours, theirs = cluster.connect(), cluster.connect()
    with ours.replication.lock(7) as first, theirs.replication.lock(7) as second, theirs.replication.lock(8) as other:
        assert (first, second, other) == (True, False, True)
    with theirs.replication.lock(7) as again:
        assert again


def test_the_largest_metadata_of_a_ledger(cluster: Cluster) -> None:
    """They are refused at once, without harm to the session; those that are accepted leave room for more segments."""
    driver = cluster.connect()
    with pytest.raises(IncorrectParameter, match=r"ledger 1: its metadata have \d+ bytes, at most 1000000 are allowed"):
        driver.ledgers.create(1, replace(METADATA, custom={"app": bytes(1_200_000)}))
    assert list(driver.ledgers.ranges()) == []
    stored = driver.ledgers.create(2, replace(METADATA, custom={"app": bytes(999_000)}))
    segments = tuple(Segment(100 * k, ("b:3181", f"10.0.{k // 256}.{k % 256}:3181")) for k in range(1000))
    closed = replace(stored.value, segments=segments, state=LedgerState.CLOSED, last_entry=100_000, length=1, token=0)
    assert driver.ledgers.write(2, closed, stored.version).value == closed
    assert driver.ledgers.read(2).value == closed
