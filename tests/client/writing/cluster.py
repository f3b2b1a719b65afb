"""A client of the write path on real bookies: what the facade puts together, and access to its internals."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from random import Random
from typing import Any

from bookie.client.bookies import BookieClient, MetadataStore
from bookie.client.config import ClientConfig
from bookie.client.entries.digest import Digest, DigestType, OpenedEntry
from bookie.client.ledgers.context import ClientContext
from bookie.client.ledgers.metadata_loop import Known
from bookie.client.ledgers.writer import LedgerWriter
from bookie.client.placement.default import DefaultPlacement
from bookie.errors import BookKeeperError
from bookie.metadata import open_driver
from bookie.metadata.records.ledger_metadata import DigestType as StoredDigest
from bookie.metadata.records.ledger_metadata import LedgerMetadata, Segment
from tests.fixtures.bookies import BookieProcess

DIGEST = Digest.of(DigestType.CRC32C, b"pw")
PATIENT = {"add_timeout_s": 60, "read_timeout_s": 60}


def uri_of(bookie: BookieProcess) -> str:
    """Return the URI of the metadata store that the first bookie owns."""
    return f"grpc://127.0.0.1:{bookie.settings['adminPort']}"


class Client:
    """A context with all bookies that are registered now, and writers on it."""

    def __init__(self, context: ClientContext) -> None:
        self.context = context

    async def create(self, sizes: tuple[int, int, int], ensemble: Sequence[str] = (), **options: Any) -> LedgerWriter:
        """Create a ledger, on this ensemble if one is given."""
        ensemble = tuple(ensemble) or self.context.placement.new_ensemble(*sizes)
        metadata = LedgerMetadata(
            ensemble_size=sizes[0],
            write_quorum=sizes[1],
            ack_quorum=sizes[2],
            segments=(Segment(0, tuple(ensemble)),),
            digest_type=StoredDigest.CRC32C,
            password=b"pw",
        )
        ledger = await self.context.metadata.new_id()
        stored = await self.context.metadata.create(ledger, metadata)
        writer = LedgerWriter(Known(ledger, stored), DIGEST, self.context, **options)
        writer.start()
        return writer

    async def copies(self, writer: LedgerWriter, entry: int) -> dict[str, OpenedEntry]:
        """Return the bookies of an entry's write set that hold it intact, according to the metadata in the store."""
        metadata = (await self.context.metadata.read(writer.ledger)).value
        found = {}
        for bookie in metadata.write_set(entry):
            try:
                answer = await self.context.bookies.read(bookie, writer.ledger, entry)
            except BookKeeperError:
                continue
            found[bookie] = DIGEST.open(answer.stored or b"", writer.ledger, entry)
        return found

    async def check(self, writer: LedgerWriter, payloads: Sequence[bytes], *, among: int = 40) -> LedgerMetadata:
        """Check L3, L4 and L6 of a closed ledger: its segments, and a sample of entries on an ack quorum of bookies."""
        metadata = (await self.context.metadata.read(writer.ledger)).value
        assert metadata.problem() is None
        assert (metadata.last_entry, metadata.length) == (len(payloads) - 1, sum(map(len, payloads)))
        assert all(len(set(segment.bookies)) == metadata.ensemble_size for segment in metadata.segments)
        chosen = {*range(0, len(payloads), max(1, len(payloads) // among)), *range(len(payloads))[-3:]}
        chosen |= {
            k for one in metadata.segments for k in (one.first_entry - 1, one.first_entry) if 0 <= k < len(payloads)
        }
        for entry in sorted(chosen):
            copies = await self.copies(writer, entry)
            assert len(copies) >= metadata.ack_quorum, f"entry {entry} is only on {sorted(copies)}"
            for copy in copies.values():
                assert copy.payload == payloads[entry]
                assert copy.length == sum(map(len, payloads[: entry + 1]))
                assert copy.lac < entry
        return metadata


@asynccontextmanager
async def client(
    uri: str, wrap: Callable[[MetadataStore], Any] = lambda store: store, **config: Any
) -> AsyncIterator[Client]:
    """Yield a client of the store at `uri`; `wrap` may put something between the store and the writers."""
    settings = ClientConfig(**(PATIENT | config))
    store = await MetadataStore.open(open_driver(uri))
    try:
        placement = DefaultPlacement(settings, Random(1))
        placement.bookies_changed(await store.bookies(read_only=False), await store.bookies(read_only=True))
        async with BookieClient(settings, store.info) as bookies:
            yield Client(ClientContext(settings, bookies, wrap(store), placement, Random(1)))
    finally:
        await store.close()


def run(scenario: Coroutine[Any, Any, None]) -> None:
    """Run on an event loop of its own, with a time limit."""

    async def bounded() -> None:
        async with asyncio.timeout(120):
            await scenario

    asyncio.run(bounded())
