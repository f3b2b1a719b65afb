"""Four real bookies with a metadata store of each kind, and ledgers on them that are made entry by entry.

A *ghost* is a bookie in some ledger's metadata that does not run; the cluster takes it for a bookie that died.
"""

import asyncio
import gc
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, TypeVar

import pytest

from bookie.client import Digest, DigestType, Flags
from bookie.client.bookies.client import BookieClient
from bookie.client.bookies.stores import MetadataStore
from bookie.client.config import ClientConfig
from bookie.client.replication.contracts import Environment
from bookie.client.replication.service import connected
from bookie.client.replication.settings import RecoverySettings
from bookie.metadata import open_driver
from bookie.metadata.driver import MetadataDriver
from bookie.metadata.records import ledger_metadata
from bookie.metadata.records.ledger_metadata import LedgerMetadata, LedgerState, Segment
from tests.fixtures.bookies import BookieProcess
from tests.interop.payload import payload
from tests.metadata.seen import Seen

T = TypeVar("T")
GHOST = "10.255.255.1:3181"
PASSWORD = b"secret"
SIZE = 1024
SESSION_TIMEOUT_MS = 4000
SOON = {
    "zkTimeout": 400,
    "rwRereplicateBackoffMs": 50,
    "lockReleaseOfFailedLedgerGracePeriod": 3200,
    "openLedgerRereplicationGracePeriod": 200,
    "auditorPeriodicCheckInterval": 0,
    "weightPacedReplicationMaxPauseMs": 20,
    "auditorFullCheckInterval": 0,
}


@dataclass
class Cluster:
    """The bookies by id, and a driver with a session of its own."""

    uri: str
    processes: list[BookieProcess]
    driver: MetadataDriver
    ledgers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    @property
    def ids(self) -> list[str]:
        return [process.id for process in self.processes]

    async def write(
        self,
        segments: Sequence[tuple[int, Sequence[str]]],
        last: int,
        *,
        write_quorum: int | None = None,
        ack_quorum: int = 1,
        closed: bool = True,
        digest: Digest | None = None,
        spoiled: Sequence[str] = (),
        absent: Sequence[str] = (),
        holes: Sequence[int] = (),
        longer: Collection[tuple[str, int]] = (),
        lacking: Collection[tuple[str, int]] = (),
        ledger: int | None = None,
    ) -> int:
        """Write a ledger with entries 0 to `last` to those bookies of its segments that run; on `spoiled` no digest
        is valid.

        Nothing is written to bookies in `absent`, no entry of `holes` to any bookie, and no entry to a bookie if both
        are in `lacking`. For each bookie and entry in
        `longer`, the ledger's length in that entry is one byte more.
        """
        size = len(segments[0][1])
        digest = digest or Digest.of(DigestType.CRC32C, PASSWORD)
        metadata = LedgerMetadata(
            ensemble_size=size,
            write_quorum=write_quorum or size,
            ack_quorum=ack_quorum,
            segments=tuple(Segment(first, tuple(bookies)) for first, bookies in segments),
            digest_type=ledger_metadata.DigestType(digest.type),
            password=PASSWORD,
        )
        ledger = next(self.ledgers) if ledger is None else ledger
        running = set(self.ids).difference(absent)
        async with BookieClient() as client:
            adds = []
            for entry in sorted(set(range(last + 1)).difference(holes)):
                content = payload(ledger, entry, SIZE)
                for bookie in running.intersection(metadata.write_set(entry)):
                    if (bookie, entry) in lacking:
                        continue
                    length = (entry + 1) * SIZE + ((bookie, entry) in longer)
                    stored = digest.seal(ledger, entry, content, lac=entry - 1, length=length)
                    bad = stored[:-1] + bytes([stored[-1] ^ 1]) if bookie in spoiled else stored
                    adds.append(client.add(bookie, ledger, entry, bad, digest.master_key, flags=Flags.RECOVERY_ADD))
            await asyncio.gather(*adds)
        if closed:
            metadata = replace(metadata, state=LedgerState.CLOSED, last_entry=last, length=(last + 1) * SIZE)
        self.driver.ledgers.create(ledger, metadata)
        return ledger

    def bookies_of(self, ledger: int) -> list[tuple[str, ...]]:
        """Return the present ensembles of a ledger."""
        return [segment.bookies for segment in self.driver.ledgers.read(ledger).value.segments]

    def wait_without(self, ledger: int, bookie: str) -> LedgerMetadata:
        """Block until no segment has `bookie`."""
        seen = Seen()
        watch = self.driver.ledgers.watch(ledger, seen)

        def moved(stored: Any) -> bool:
            return stored is not None and all(bookie not in segment.bookies for segment in stored.value.segments)

        found = seen.wait_for(moved, f"of ledger {ledger} without {bookie}")
        watch.close()
        return found.value  # type: ignore[no-any-return]

    def holds(self, ledger: int, metadata: LedgerMetadata, *, but: str = "") -> None:
        """Fail unless each bookie except `but` holds every entry that it must, with a valid digest."""
        assert metadata.digest_type is not None
        digest = Digest.of(DigestType(metadata.digest_type), metadata.password)

        async def look() -> None:
            async with BookieClient() as client:
                for entry in range(metadata.last_entry + 1):
                    for bookie in set(metadata.write_set(entry)) - {but}:
                        answer = await client.read(bookie, ledger, entry)
                        assert answer.stored is not None
                        opened = digest.open(answer.stored, ledger, entry)
                        assert opened.payload == payload(ledger, entry, SIZE)
                        assert opened.length == (entry + 1) * SIZE

        asyncio.run(look())

    @asynccontextmanager
    async def environment(self, name: str = "worker", **keys: Any) -> AsyncIterator[Environment]:
        """Return what auto-recovery shares, under a session of its own, with settings of either kind."""
        given = {**SOON, **keys}
        own = {one.metadata["key"] for one in RecoverySettings.__dataclass_fields__.values()}
        settings = RecoverySettings.of({key: value for key, value in given.items() if key in own})
        config = ClientConfig.of({key: value for key, value in given.items() if key not in own})
        store = await MetadataStore.open(open_driver(self.uri, session_timeout_ms=SESSION_TIMEOUT_MS))
        try:
            async with connected(name, store, config, settings) as environment:
                yield environment
        finally:
            await store.close()


async def comes_true(fits: Callable[[], bool]) -> None:
    """Wait for a condition without notification."""
    for _ in itertools.count():
        if fits():
            return
        await asyncio.sleep(0.01)


async def until(work: Awaitable[Any], done: Coroutine[Any, Any, T]) -> T:
    """Wait for `done` while `work` runs; if `work` ends first, its error is raised."""
    task, waiting = asyncio.ensure_future(work), asyncio.ensure_future(done)
    try:
        await asyncio.wait([task, waiting], timeout=60, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            task.result()
        assert waiting.done(), "not within a minute"
        return waiting.result()
    finally:
        for one in (task, waiting):
            one.cancel()
        await asyncio.gather(task, waiting, return_exceptions=True)


@pytest.fixture(scope="module", params=["embedded", pytest.param("zookeeper", marks=pytest.mark.interop)])
def shared_cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Four bookies for the tests of this directory."""
    root = tmp_path_factory.mktemp("replication")
    if request.param == "zookeeper":
        server = request.getfixturevalue("zookeeper")
        uri = f"zk+hierarchical://{server.address}{server.new_root()}"
        driver = open_driver(uri)
        driver.start()
        driver.cluster.initialize()
        driver.stop()
    else:
        uri = ""
    processes: list[BookieProcess] = []
    for number in range(4):
        where = uri or f"lmdb://{root}/metadata"
        settings = {"zkTimeout": "4000", "entryLogPerLedgerEnabled": "true", "flushInterval": "100"}
        processes.append(BookieProcess(root / f"bookie-{number}", where, settings))
        if not uri:
            uri = f"grpc://127.0.0.1:{processes[0].settings['adminPort']}"
    for process in processes:
        process.start()
    driver = open_driver(uri)
    driver.start()
    yield Cluster(uri, processes, driver)
    driver.stop()
    for process in reversed(processes):
        process.kill()
    gc.collect()  # gRPC closes its channels when they are collected, which should happen here and not in another test


@pytest.fixture
def cluster(shared_cluster: Cluster) -> Iterator[Cluster]:
    """The shared cluster, without marks and ledgers, and with all bookies running."""
    for process in shared_cluster.processes:
        if process.process is None:
            process.start()
    yield shared_cluster
    driver = shared_cluster.driver
    driver.replication.enable(enabled=True)
    driver.replication.set_lost_bookie_delay_s(0)
    for ids in list(driver.ledgers.ranges()):
        for ledger in ids:
            driver.ledgers.delete(ledger)
    while claim := driver.replication.claim("cleaner", Random(1), _ignore):
        driver.replication.finish(claim)


def _ignore() -> None:
    """Do nothing."""
