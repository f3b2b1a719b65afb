"""Java clients and ours on the same ledgers, on bookies of both kinds: what one writes the other reads and recovers.

Every ledger lies on all three bookies of its cluster. By default that is the cluster with both kinds in it;
BOOKIE_MIXED_WORLDS=all adds those of one kind.
"""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, NamedTuple

import pytest
from kazoo.client import KazooClient

from bookie.client import BookKeeper, WriteHandle
from bookie.errors import BookKeeperError
from bookie.metadata.records.ledger_codec import parse_ledger, serialize_ledger
from bookie.metadata.records.ledger_metadata import DigestType
from bookie.metadata.uri import parse_uri
from bookie.metadata.zookeeper.layout import Layout
from bookie.metadata.zookeeper.ledger_paths import ledger_path
from tests.fixtures.java_peer import BATCH_READS, JavaPeer
from tests.interop.conftest import Client, Standing, new_cluster
from tests.interop.driver import FENCED, FENCED_TOO_LATE, LEDGER_CLOSED, UNAUTHORIZED, Driver, JavaError
from tests.interop.payload import payload
from tests.test_examples import run

pytestmark = [pytest.mark.interop, pytest.mark.leaks("the clients of a world keep their connections")]

KINDS = {"mixed": ("java", "ours", "ours"), "java": ("java",) * 3, "ours": ("ours",) * 3}
WORLDS = list(KINDS) if os.environ.get("BOOKIE_MIXED_WORLDS") == "all" else ["mixed"]
DIGESTS = {"CRC32": "CRC32", "CRC32C": "CRC32C", "HMAC": "MAC", "DUMMY": "DUMMY"}  # ours and Java's names
ENTRIES, SIZE = 120, 300
PASSWORD = "pässword"


class MixedCluster(NamedTuple):
    """A cluster, and a client of each kind."""

    uri: str
    java: Client
    ours: BookKeeper
    v2: bool


@pytest.fixture(scope="module", params=WORLDS)
def world_uri(
    request: pytest.FixtureRequest,
    java_peer: JavaPeer,
    zookeeper: Any,
    standing: Standing,
    tmp_path_factory: pytest.TempPathFactory,
) -> str:
    """A cluster with three bookies of those kinds."""
    uri = new_cluster(java_peer, zookeeper.address, tmp_path_factory.mktemp("init"))
    for number, kind in enumerate(KINDS[request.param]):
        standing(kind, uri, str(number))
    return uri


@pytest.fixture(scope="module", params=[True, False], ids=["v2", "v3"])
def world(request: pytest.FixtureRequest, java_driver: Driver, world_uri: str) -> Iterator[MixedCluster]:
    """Clients of both kinds in one protocol. Only in V2 does Java have batch reads."""
    java = Client(java_driver, world_uri, v2=request.param, batch=request.param)
    with BookKeeper(world_uri, useV2WireProtocol=request.param) as ours:
        yield MixedCluster(world_uri, java, ours, request.param)
    java.call("disconnect")


class Written(NamedTuple):
    """A ledger that one of the clients writes."""

    ledger: int
    add: Callable[[int], None]
    """Adds the given number of entries."""
    close: Callable[[], None]


def created(world: MixedCluster, writer: str, digest: str, *, w: int = 3, a: int = 2) -> Written:
    """Make a ledger by the client of that kind, on all three bookies."""
    if writer == "java":
        made = world.java.call(
            "create", e=3, w=w, a=a, digest=DIGESTS[digest], password=PASSWORD, custom={"by": "java"}
        )
        handle = made["handle"]

        def add(count: int) -> None:
            done = world.java.call("add", handle=handle, n=count, size=SIZE)
            if "error" in done:
                raise JavaError(done["error"]["code"], done["error"]["name"], done["error"]["message"])

        def close() -> None:
            world.java.call("close", handle=handle)

        return Written(made["ledger"], add, close)
    ledger = world.ours.create_ledger(
        ensemble_size=3,
        write_quorum_size=w,
        ack_quorum_size=a,
        digest_type=digest,
        password=PASSWORD.encode(),
        custom_metadata={"by": b"ours"},
    )
    return Written(ledger.id, lambda count: append(ledger, count), ledger.close)


def append(ledger: WriteHandle, count: int) -> None:
    """Add entries with the content that both sides expect."""
    first = ledger.last_add_pushed + 1
    for entry in range(first, first + count):
        ledger.append_async(payload(ledger.id, entry, SIZE))
    ledger.flush()


def read_by_java(world: MixedCluster, ledger: int, digest: str, *, recovery: bool = False) -> dict[str, Any]:
    """Open the ledger with Java's client, read all of it singly and in batches, and return what the client reports."""
    handle = world.java.call("open", ledger=ledger, digest=DIGESTS[digest], password=PASSWORD, recovery=recovery)
    last = handle["lac"]
    for op in ("read", "batch_read") if world.v2 and BATCH_READS else ("read",):
        found = world.java.call(op, handle=handle["handle"], first=0, last=last, size=SIZE)
        assert (found["entries"], found["wrong"]) == (last + 1, 0), found
    return {**handle, **world.java.call("metadata", handle=handle["handle"])}


def read_by_ours(world: MixedCluster, ledger: int, *, recovery: bool = False) -> tuple[int, int]:
    """Open the ledger with our client, read all of it singly and by batches, and return its last entry and length."""
    with world.ours.open_ledger(ledger, password=PASSWORD.encode(), recovery=recovery) as reader:
        last = reader.last_add_confirmed
        expected = [payload(ledger, entry, SIZE) for entry in range(last + 1)]
        assert [bytes(entry.data) for entry in reader.read(0, last)] == expected
        assert [bytes(entry.data) for batch in reader.batches(max_count=50) for entry in batch] == expected
        assert bytes(reader.batch_read(last, max_count=5)[0].data) == expected[last]
        return last, reader.length


@pytest.mark.parametrize("digest", DIGESTS)
@pytest.mark.parametrize("writer", ["java", "ours"])
def test_what_one_writes_the_other_reads(world: MixedCluster, writer: str, digest: str) -> None:
    """A closed, striped ledger is read with its length and custom metadata, and only with its password."""
    written = created(world, writer, digest, w=2)
    written.add(ENTRIES)
    written.close()
    metadata = world.ours.ledger_metadata(written.ledger)
    assert metadata.custom == {"by": writer.encode()}
    assert metadata.digest_type is DigestType[digest]
    found = read_by_java(world, written.ledger, digest)
    assert (found["lac"], found["length"], found["state"]) == (ENTRIES - 1, ENTRIES * SIZE, "CLOSED")
    assert read_by_ours(world, written.ledger) == (ENTRIES - 1, ENTRIES * SIZE)
    with pytest.raises(JavaError) as refused:
        world.java.call("open", ledger=written.ledger, digest=DIGESTS[digest], password="other")
    assert refused.value.code == UNAUTHORIZED
    with pytest.raises(BookKeeperError) as refused_too:
        world.ours.open_ledger(written.ledger, password=b"other")
    assert refused_too.value.code == UNAUTHORIZED


@pytest.mark.parametrize("digest", DIGESTS)
@pytest.mark.parametrize("writer", ["java", "ours"])
def test_what_one_leaves_the_other_recovers(world: MixedCluster, writer: str, digest: str) -> None:
    """Nothing acknowledged is missing, the writer learns that it is fenced, and both clients then read the ledger."""
    written = created(world, writer, digest)
    written.add(ENTRIES)
    if writer == "java":
        assert read_by_ours(world, written.ledger, recovery=True) == (ENTRIES - 1, ENTRIES * SIZE)
    else:
        assert read_by_java(world, written.ledger, digest, recovery=True)["lac"] == ENTRIES - 1
    with pytest.raises((JavaError, BookKeeperError)) as late:
        written.add(1)
    expected = FENCED_TOO_LATE if writer == "java" else {FENCED, LEDGER_CLOSED}
    assert getattr(late.value, "code", None) in expected
    found = read_by_java(world, written.ledger, digest)
    assert (found["lac"], found["length"], found["state"]) == (ENTRIES - 1, ENTRIES * SIZE, "CLOSED")
    assert read_by_ours(world, written.ledger) == (ENTRIES - 1, ENTRIES * SIZE)


@pytest.mark.parametrize("writer", ["java", "ours"])
def test_recoveries_of_both_kinds_agree(world: MixedCluster, writer: str) -> None:
    """L10, L1: when a Java client and ours recover a ledger at once while its writer works, they agree on the last
    entry.

    It is at or after the last that was acknowledged, and both read everything up to it.
    """
    with ThreadPoolExecutor(3) as threads:
        for _ in range(3):
            written = created(world, writer, "CRC32C")
            written.add(20)
            adding = threads.submit(written.add, 100_000)
            java = threads.submit(
                world.java.call, "open", ledger=written.ledger, password=PASSWORD, recovery=True, digest="CRC32C"
            )
            ours = world.ours.open_ledger_async(written.ledger, password=PASSWORD.encode())
            last = ours.result().last_add_confirmed
            assert java.result()["lac"] == last >= 19
            assert isinstance(adding.exception(), JavaError | BookKeeperError)
            assert read_by_java(world, written.ledger, "CRC32C")["lac"] == last
            assert read_by_ours(world, written.ledger)[0] == last


def test_the_example_of_the_documentation(world: MixedCluster) -> None:
    """It runs unchanged, with a cluster in ZooKeeper."""
    said = run(["docs/examples/ledgers.py", world.uri]).splitlines()
    assert said == ["0 b'one'", "1 b'two'", "2 b'three'", "a future: b'two'", "followed: 10000"]


def test_metadata_have_the_same_bytes(world: MixedCluster) -> None:
    """Open and closed, we store what Java stores, and the creation time as well, which Java stores only if it is told
    to. Otherwise only the names in the ledgers differ.
    """
    where = parse_uri(world.uri)
    zookeeper = KazooClient(where.hosts[0])
    zookeeper.start()
    try:
        for ends in (False, True):
            alike = set()
            for writer in ("java", "ours"):
                written = created(world, writer, "HMAC")
                written.add(3)
                if ends:
                    written.close()
                path = where.path + ledger_path(Layout(), written.ledger)
                stored = bytes(zookeeper.get(path)[0])
                metadata = parse_ledger(written.ledger, stored)
                assert serialize_ledger(metadata) == stored
                assert (metadata.ctime_ms is not None) is (writer == "ours")
                segments = tuple(replace(segment, bookies=("a", "b", "c")) for segment in metadata.segments)
                alike.add(serialize_ledger(replace(metadata, segments=segments, custom={}, token=1, ctime_ms=None)))
            assert len(alike) == 1
    finally:
        zookeeper.stop()
        zookeeper.close()
