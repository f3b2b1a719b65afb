"""A recovery that dies before it closes the ledger leaves nothing behind that a reader or another recovery trusts.

Real bookies, with failures between them and the recovering client.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bookie.client.contracts import AddSender, SenderOwner
from bookie.client.ledgers.opening import Credentials, open_ledger, open_reader
from bookie.client.ledgers.writer import LedgerWriter
from bookie.client.wire.answers_v3 import ReadAnswer
from bookie.errors import BookieUnavailable, BookKeeperError, MetadataStoreError, NoSuchEntry
from bookie.metadata.driver import Versioned
from bookie.metadata.records.ledger_metadata import LedgerMetadata, LedgerState
from tests.client.writing.cluster import DIGEST, Client, client, run, uri_of
from tests.fixtures.bookies import BookieProcess

OURS = Credentials(b"pw")
FOUND = 6
"""How many entries were added when the writer went away; only entry 0 is acknowledged."""


class Counting:
    """A `SenderOwner` that also reports which entries were acknowledged."""

    def __init__(self, owner: SenderOwner, arrived: Callable[[int], None]) -> None:
        self._owner, self._arrived = owner, arrived

    def answered(self, entries: NDArray[np.int64], codes: NDArray[np.int32]) -> None:
        """Pass the responses on, then report them."""
        self._owner.answered(entries, codes)
        for entry in entries.tolist():
            self._arrived(entry)

    def lost(self, error: BookKeeperError) -> None:
        """Pass it on."""
        self._owner.lost(error)

    def on_room(self) -> None:
        """Pass it on."""
        self._owner.on_room()


class Silent:
    """An `AddSender` whose adds never arrive."""

    full = False

    def send(self, *_: object) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


class Trouble:
    """The bookies as a recovery sees them: no connection to `hangs`, adds to `slow` never arrive.

    Entries are read only after those before them were written again, so that each is sealed when they are complete.
    """

    def __init__(self, bookies: Any, hangs: str, slow: str) -> None:
        self._bookies, self._hangs, self._slow = bookies, hangs, slow
        self._copies: dict[int, int] = {}
        self._complete: defaultdict[int, asyncio.Event] = defaultdict(asyncio.Event)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._bookies, name)

    async def read(self, bookie: str, ledger: int, entry: int, **options: Any) -> ReadAnswer:
        """Read from a bookie that answers."""
        if bookie == self._hangs:
            raise BookieUnavailable("it hangs")
        if entry > 1:
            await self._complete[entry - 1].wait()
        answer: ReadAnswer = await self._bookies.read(bookie, ledger, entry, **options)
        return answer

    def adds(self, bookie: str, ledger: int, master_key: bytes, owner: SenderOwner, **options: Any) -> AddSender:
        """Open a sender."""
        if bookie == self._slow:
            return Silent()
        if bookie == self._hangs:
            asyncio.get_running_loop().call_soon(owner.lost, BookieUnavailable("it hangs"))
            return Silent()
        sender: AddSender = self._bookies.adds(bookie, ledger, master_key, Counting(owner, self._arrived), **options)
        return sender

    def _arrived(self, entry: int) -> None:
        self._copies[entry] = self._copies.get(entry, 0) + 1
        if self._copies[entry] == 2:
            self._complete[entry].set()


class Dying:
    """A store that a recovery does not reach any more when it wants to close the ledger."""

    def __init__(self, store: Any) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def write(self, ledger: int, metadata: LedgerMetadata, version: int) -> Versioned[LedgerMetadata]:
        """Refuse to close a ledger."""
        if metadata.state is LedgerState.CLOSED:
            raise MetadataStoreError("this client has died")
        stored: Versioned[LedgerMetadata] = await self._store.write(ledger, metadata, version)
        return stored


class Deaf:
    """Bookies of which one does not answer."""

    def __init__(self, bookies: Any, deaf: str) -> None:
        self._bookies, self._deaf = bookies, deaf

    def __getattr__(self, name: str) -> Any:
        return getattr(self._bookies, name)

    async def read(self, bookie: str, *given: Any, **options: Any) -> ReadAnswer:
        """Raise an error for the bookie that does not answer."""
        if bookie == self._deaf:
            raise BookieUnavailable("it does not answer")
        answer: ReadAnswer = await self._bookies.read(bookie, *given, **options)
        return answer


async def abandoned(c: Client, three: list[str]) -> LedgerWriter:
    """Return the writer of a ledger whose entry 0 is acknowledged and whose other entries are on the third bookie
    only; a recovery has written those again, on the third bookie and on a replacement of the first, and has died.
    """
    writer = await c.create((3, 3, 2), three)
    await writer.append(b"late")
    for entry in range(1, FOUND):
        stored = DIGEST.seal(writer.ledger, entry, b"late", lac=0, length=4 * (entry + 1))
        await c.context.bookies.add(three[2], writer.ledger, entry, stored, DIGEST.master_key)
    dying = replace(
        c.context, bookies=Trouble(c.context.bookies, three[0], three[1]), metadata=Dying(c.context.metadata)
    )
    with pytest.raises(MetadataStoreError, match="died"):
        await open_ledger(dying, writer.ledger, OURS, recovery=True)
    writer.stop()
    return writer


def test_l7_no_reader_trusts_what_only_a_recovery_has_counted(five: list[BookieProcess]) -> None:
    """L7, ST5: the entries that a dead recovery wrote again are not confirmed to a reader without recovery."""

    async def scenario() -> None:
        async with client(uri_of(five[0])) as c:
            three = [bookie.id for bookie in five[1:4]]
            writer = await abandoned(c, three)
            reader = await open_reader(c.context, writer.ledger, OURS, recovery=False)
            shown = reader.view.lac, await reader.try_read_last_add_confirmed(), await reader.read_last_add_confirmed()
            reader.close()
            # The third bookie fails, and the others deny entry 1.
            context = replace(c.context, bookies=Deaf(c.context.bookies, three[2]))
            known, _ = await open_ledger(context, writer.ledger, OURS, recovery=True)
            assert known.metadata.last_entry == 0
            assert max(shown) <= known.metadata.last_entry

    run(scenario())


def test_l3_the_next_recovery_writes_everything_again(five: list[BookieProcess]) -> None:
    """L3, ST5: the next recovery begins where the dead one began, and all entries come to their write set."""

    async def scenario() -> None:
        async with client(uri_of(five[0])) as c:
            three = [bookie.id for bookie in five[1:4]]
            writer = await abandoned(c, three)
            # The first bookie is slow, so the third one decides what the LAC is.
            context = replace(c.context, bookies=Deaf(c.context.bookies, three[0]))
            known, _ = await open_ledger(context, writer.ledger, OURS, recovery=True)
            assert known.metadata.last_entry == FOUND - 1
            await c.check(writer, [b"late"] * FOUND)
            with pytest.raises(NoSuchEntry):
                await c.context.bookies.read(three[2], writer.ledger, FOUND)

    run(scenario())
