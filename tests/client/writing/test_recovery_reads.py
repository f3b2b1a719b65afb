"""How many entries a recovery reads at the same time, and that what it reads ahead changes nothing."""

import asyncio
from collections.abc import Collection
from dataclasses import replace
from typing import Any

import pytest

from bookie.client.bookies import BookieClient
from bookie.client.config import ClientConfig
from bookie.client.entries.batch import LENGTH_PREFIX
from bookie.client.ledgers.opening import Credentials, open_ledger
from bookie.client.ledgers.read_ahead import ReadAhead
from bookie.client.ledgers.writer import LedgerWriter
from bookie.client.wire.answers_v3 import ReadAnswer
from bookie.client.wire.v2 import WireV2
from bookie.client.wire.v3 import WireV3
from bookie.errors import LedgerRecoveryError
from tests.client.writing.cluster import DIGEST, Client, client, run, uri_of
from tests.fixtures.bookies import BookieProcess

OURS = Credentials(b"pw")
PAYLOAD = b"late"
READS_MAX = 4


class Held:
    """Bookies that answer the read of an entry after the first one only once it is released."""

    def __init__(self, bookies: Any) -> None:
        self._bookies = bookies
        self._released = 0
        self._changed = asyncio.Condition()
        self.asked: set[int] = set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._bookies, name)

    async def read(self, bookie: str, ledger: int, entry: int, **options: Any) -> ReadAnswer:
        """Note what is read, and wait."""
        async with self._changed:
            if entry >= 0:
                self.asked.add(entry)
            self._changed.notify_all()
            await self._changed.wait_for(lambda: entry <= self._released)
        answer: ReadAnswer = await self._bookies.read(bookie, ledger, entry, **options)
        return answer

    async def held(self, last: int) -> int:
        """Wait until all entries up to `last` are asked for, and return how many reads are outstanding."""
        async with self._changed:
            await self._changed.wait_for(lambda: last in self.asked)
            assert max(self.asked) == last
            return last - self._released

    async def release(self, entry: int) -> None:
        """Let reads up to this entry go on."""
        async with self._changed:
            self._released = entry
            self._changed.notify_all()


async def left_open(c: Client, three: list[str], stored: Collection[int]) -> LedgerWriter:
    """Return the stopped writer of a ledger with entry 0, and with these entries, of which only the bookies know."""
    writer = await c.create((3, 3, 2), three)
    await writer.append(PAYLOAD)
    for entry in stored:
        sealed = DIGEST.seal(writer.ledger, entry, PAYLOAD, lac=0, length=len(PAYLOAD) * (entry + 1))
        for bookie in three:
            await c.context.bookies.add(bookie, writer.ledger, entry, sealed, DIGEST.master_key)
    writer.stop()
    return writer


def test_reads_double_with_each_entry_found(five: list[BookieProcess]) -> None:
    """L10: there is one read, then two and four, and no more; the end is the first entry that is missing."""

    async def scenario() -> None:
        async with client(uri_of(five[0]), recovery_read_batch=READS_MAX, speculative_read_first_s=0.0) as c:
            writer = await left_open(c, [bookie.id for bookie in five[:3]], range(1, 7))
            held = Held(c.context.bookies)
            context = replace(c.context, bookies=held)
            recovering = asyncio.ensure_future(open_ledger(context, writer.ledger, OURS, recovery=True))
            reads = []
            for entry, last in enumerate((1, 3, 6, 7, 8, 9, 10), start=1):
                reads.append(await held.held(last))
                await held.release(entry)
            known, _ = await recovering
            assert reads == [1, 2, 4, 4, 4, 4, 4]
            assert max(held.asked) == 10
            assert known.metadata.last_entry == 6
            await c.check(writer, [PAYLOAD] * 7)

    run(scenario())


def test_l3_what_was_read_ahead_is_not_in_the_ledger(five: list[BookieProcess]) -> None:
    """L3, L10: the ledger ends before an entry that is missing, though those behind it were found before that."""

    async def scenario() -> None:
        async with client(uri_of(five[0]), speculative_read_first_s=0.0) as c:
            three = [bookie.id for bookie in five[:3]]
            writer = await left_open(c, three, (1, 2, 3, 5, 6, 7))
            found: list[int] = []
            arrived = asyncio.Event()

            class Hole(Held):
                """Bookies that say that the entry is missing when those behind it have arrived."""

                async def read(self, bookie: str, ledger: int, entry: int, **options: Any) -> ReadAnswer:
                    if entry == 4:
                        await arrived.wait()
                    answer: ReadAnswer = await self._bookies.read(bookie, ledger, entry, **options)
                    found.append(entry)
                    if {5, 6, 7} <= set(found):
                        arrived.set()
                    return answer

            context = replace(c.context, bookies=Hole(c.context.bookies))
            known, _ = await open_ledger(context, writer.ledger, OURS, recovery=True)
            assert known.metadata.last_entry == 3
            await c.check(writer, [PAYLOAD] * 4)

    run(scenario())


def test_reads_are_limited_by_the_largest_entry() -> None:
    """They do not exceed the limits of their number and of their bytes, and one may always be read."""
    ahead = ReadAhead(ClientConfig(recovery_read_batch=64, bytes_in_flight_max=1 << 20))
    counts = []
    for nbytes in (0, 1 << 10, 1 << 10, 1 << 17, 1 << 10, 1 << 16, 3 << 20, 1):
        ahead.found(nbytes)
        counts.append(ahead.count)
    assert counts == [2, 4, 8, 8, 8, 8, 1, 1]
    small = ReadAhead(ClientConfig(recovery_read_batch=10))
    for _ in range(100):
        small.found(0)
    assert small.count == 10


@pytest.mark.thorough
@pytest.mark.parametrize(("v2", "more"), [(True, 0), *((False, more) for more in (0, 1, 20, 40, 55))])
def test_l3_the_largest_entries(five: list[BookieProcess], v2: bool, more: int) -> None:
    """A writer that needs fewer bytes for the rest of a frame can store entries that are too large for our writers. A
    recovery copies them while they fit into its own frames, and otherwise ends with an error that says what to do.
    """

    async def scenario() -> None:
        async with client(uri_of(five[0])) as c:
            three = [bookie.id for bookie in five[:3]]
            writer = await left_open(c, three, ())
            wire: type[WireV2 | WireV3] = WireV2 if v2 else WireV3
            header = LENGTH_PREFIX + len(DIGEST.seal(writer.ledger, 1, b"", lac=0, length=0))
            largest = bytes(c.context.config.frame_bytes_max - wire.add_overhead_max - header + more)
            stored = DIGEST.seal(writer.ledger, 1, largest, lac=0, length=len(PAYLOAD) + len(largest))
            settings = replace(c.context.config, use_v2_wire_protocol=True, frame_bytes_max=len(stored) + 100)
            store: Any = c.context.metadata
            async with BookieClient(settings, store.info) as roomy:
                for bookie in three:
                    await roomy.add(bookie, writer.ledger, 1, stored, DIGEST.master_key)
        async with client(uri_of(five[0]), use_v2_wire_protocol=v2) as c:
            if more:
                with pytest.raises(LedgerRecoveryError, match=r"nettyMaxFrameSizeBytes|raise that limit"):
                    await open_ledger(c.context, writer.ledger, OURS, recovery=True)
            else:
                known, _ = await open_ledger(c.context, writer.ledger, OURS, recovery=True)
                assert known.metadata.last_entry == 1

    run(scenario())
