"""Unexpected errors while adds are pending end the ledger, and leave no caller waiting."""

from typing import Any

import pytest

from bookie.client.bookies.stores import MetadataStore
from bookie.client.ledgers.senders import EnsembleSender
from bookie.errors import BookieUnavailable, LedgerClosed, MetadataStoreError, WriteError
from bookie.metadata.records.ledger_metadata import LedgerState
from tests.client.writing.cluster import client, run, uri_of
from tests.fixtures.bookies import BookieProcess

DEAD = "127.0.0.1:1"


def fails(*_: Any, **__: Any) -> Any:
    """Raise an unexpected error."""
    raise ValueError("not foreseen")


@pytest.mark.thorough
def test_no_other_bookie_can_be_chosen(five: list[BookieProcess], monkeypatch: pytest.MonkeyPatch) -> None:
    """A placement policy that fails ends the pending adds, and the ledger is closed at its LAC."""

    async def scenario() -> None:
        async with client(uri_of(five[0])) as c:
            monkeypatch.setattr(c.context.placement, "replacement", fails)
            writer = await c.create((2, 2, 2), [five[0].id, DEAD])
            with pytest.raises(WriteError, match="not foreseen"):
                await writer.append(b"one")
            with pytest.raises(LedgerClosed):
                await writer.append(b"two")
            assert (await writer.close()).state is LedgerState.CLOSED

    run(scenario())


@pytest.mark.thorough
def test_an_add_that_cannot_be_sent(five: list[BookieProcess], monkeypatch: pytest.MonkeyPatch) -> None:
    """An error where nobody awaits it fails the adds, which would wait for ever otherwise."""

    async def scenario() -> None:
        async with client(uri_of(five[0])) as c:
            writer = await c.create((2, 2, 2), [five[0].id, five[1].id])
            await writer.append(b"one")
            with monkeypatch.context() as patched:
                patched.setattr(EnsembleSender, "send", fails)
                with pytest.raises(WriteError, match="not foreseen"):
                    await writer.append(b"two")
            assert (await writer.close()).last_entry == 0

    run(scenario())


class Failing:
    """A metadata store that cannot be read."""

    def __init__(self, store: MetadataStore) -> None:
        self.store = store
        self.fails = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    async def read(self, ledger: int, *, latest: bool = False) -> Any:
        """Raise an unexpected error."""
        if self.fails:
            raise ValueError("not foreseen")
        return await self.store.read(ledger, latest=latest)


@pytest.mark.thorough
def test_whether_it_is_still_open_cannot_be_known(five: list[BookieProcess]) -> None:
    """An add on a new connection waits to know that the ledger is still open, and ends with the ledger otherwise."""

    async def scenario() -> None:
        async with client(uri_of(five[0]), wrap=Failing) as c:
            writer = await c.create((2, 2, 2), [five[0].id, five[1].id])
            await writer.append(b"one")
            bookies: Any = c.context.bookies
            bookies._peer(five[1].id).link(writer.ledger).fail(BookieUnavailable("cut"))
            store: Any = c.context.metadata
            store.fails = True
            with pytest.raises(WriteError, match="not foreseen"):
                await writer.append(b"two")
            store.fails = False
            assert (await writer.close()).last_entry == 0

    run(scenario())


class Away(Failing):
    """A metadata store that cannot be written."""

    async def write(self, *given: Any) -> Any:
        """Raise the error of a store that does not answer."""
        if self.fails:
            raise MetadataStoreError("no answer")
        return await self.store.write(*given)


@pytest.mark.thorough
def test_a_close_while_the_store_is_away(five: list[BookieProcess]) -> None:
    """It raises the store's error, and can be repeated when the store is back, also if a failed add had closed it."""

    async def scenario() -> None:
        async with client(uri_of(five[0]), wrap=Away) as c:
            store: Any = c.context.metadata
            for given_up in (False, True):
                writer = await c.create((2, 2, 2), [five[0].id, five[1].id])
                await writer.append(b"one")
                store.fails = True
                if given_up:
                    writer._give_up(WriteError("an add failed"))
                for _ in range(2):
                    with pytest.raises(MetadataStoreError, match="no answer"):
                        await writer.close()
                store.fails = False
                assert (await writer.close()).state is LedgerState.CLOSED
                assert (await c.context.metadata.read(writer.ledger)).value.last_entry == 0

    run(scenario())
