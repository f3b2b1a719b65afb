"""Ledgers that are stored on real bookies replica by replica, so that each holds what a test wants, and their reader.

Bookies do not verify digests: a damaged replica is an entry that was stored with a flipped bit.
"""

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from random import Random
from typing import Any

from bookie.client import Channel, Digest
from bookie.client.bookies.client import BookieClient
from bookie.client.bookies.stores import MetadataStore
from bookie.client.config import ClientConfig
from bookie.client.ledgers.context import ClientContext
from bookie.client.ledgers.reader import LedgerReader
from bookie.client.placement.default import DefaultPlacement
from bookie.metadata import open_driver
from bookie.metadata.driver import Versioned
from bookie.metadata.records.ledger_metadata import LedgerMetadata, LedgerState, Segment
from tests.fixtures.bookies import BookieProcess
from tests.fixtures.frozen import freeze, thaw

DIGEST = Digest.of(password=b"secret")
_ledgers = itertools.count(1000)


def payload(entry: int) -> bytes:
    """Return the payload of an entry, which is the same in every ledger here."""
    return b"entry %d " % entry + bytes(entry % 7)


def sealed(ledger: int, entry: int, *, damaged: bool = False) -> bytes:
    """Return an entry as stored, with the LAC before it, and the length as if all payloads were equally long."""
    data = payload(entry)
    stored = DIGEST.seal(ledger, entry, data, lac=entry - 1, length=(entry + 1) * len(data))
    return stored[:-1] + bytes([stored[-1] ^ 1]) if damaged else stored


def metadata(
    ensembles: Mapping[int, Sequence[str]], last: int | None, *, quorums: tuple[int, int, int] | None = None
) -> LedgerMetadata:
    """Return metadata with these segments, closed at `last` unless it is None. `quorums` are E, W and A."""
    size, write, ack = quorums or (len(ensembles[0]), len(ensembles[0]), len(ensembles[0]))
    return LedgerMetadata(
        ensemble_size=size,
        write_quorum=write,
        ack_quorum=ack,
        segments=tuple(Segment(first, tuple(bookies)) for first, bookies in ensembles.items()),
        state=LedgerState.OPEN if last is None else LedgerState.CLOSED,
        last_entry=-1 if last is None else last,
        length=0 if last is None else 1,
    )


class Shelf:
    """Bookies, and the metadata store that the first of them owns."""

    def __init__(self, bookies: list[BookieProcess]) -> None:
        self.bookies = bookies
        self.ids = [bookie.id for bookie in bookies]
        self.uri = bookies[0].settings["metadataServiceUri"].replace("lmdb", "grpc")
        if self.uri.startswith("grpc:///"):
            self.uri = f"grpc://127.0.0.1:{bookies[0].settings['adminPort']}"

    def put(self, ledger: int, place: int, entries: Iterable[int], *, damaged: Iterable[int] = ()) -> None:
        """Store entries on one bookie."""
        bad = set(damaged)
        with Channel.connect(*self.bookies[place].address) as channel:
            waiting = [
                channel.add_stored_async(sealed(ledger, entry, damaged=entry in bad), DIGEST.master_key)
                for entry in entries
            ]
            for reply in waiting:
                reply.result()

    def ledger(self, entries: Iterable[int], places: Iterable[int] = (0, 1, 2)) -> int:
        """Store a new ledger with these entries on each of these bookies."""
        ledger = next(_ledgers)
        kept = list(entries)
        for place in places:
            self.put(ledger, place, kept)
        return ledger

    @contextmanager
    def paused(self, place: int) -> Iterator[None]:
        """Pause a bookie: it answers nothing and keeps its connections."""
        pid = self.bookies[place].pid
        freeze(pid)
        try:
            yield
        finally:
            thaw(pid)

    @asynccontextmanager
    async def reader(self, ledger: int, value: LedgerMetadata, **settings: Any) -> AsyncIterator[LedgerReader]:
        """Yield a reader with a client of its own; the metadata are not in the store."""
        config = ClientConfig.of(settings)
        store = await MetadataStore.open(open_driver(self.uri))
        try:
            async with BookieClient(config, store.info) as client:
                yield self.reader_of(ledger, Versioned(value, 0, 0), client, store, config)
        finally:
            await store.close()

    @staticmethod
    def reader_of(
        ledger: int,
        versioned: Versioned[LedgerMetadata],
        client: BookieClient,
        store: MetadataStore,
        config: ClientConfig,
    ) -> LedgerReader:
        """Return a reader on an existing client and store."""
        placement = DefaultPlacement(config, Random(1))
        return LedgerReader(ledger, versioned, DIGEST, ClientContext(config, client, store, placement, Random(1)))

    def read(
        self, ledger: int, value: LedgerMetadata, work: Callable[[LedgerReader], Awaitable[None]], **settings: Any
    ) -> None:
        """Run `work` with a reader, on an event loop of its own."""

        async def main() -> None:
            async with self.reader(ledger, value, **settings) as reader:
                await work(reader)

        asyncio.run(main())
