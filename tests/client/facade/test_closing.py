"""Clients that are closed while the metadata store creates a ledger for them: the ledger does not stay."""

import asyncio
import logging
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from bookie.client import BookKeeper as ThreadsBookKeeper
from bookie.client.aio import BookKeeper, scope
from bookie.errors import ClientClosed
from bookie.metadata import open_driver
from bookie.metadata.driver import MetadataDriver

AT = pytest.mark.parametrize("at", ["before", "after"])
"""The store stands still before it creates the ledger, or before it answers."""


class Stalled:
    """A client's connection to the metadata store, which stands still at its first create until `go_on` is set."""

    def __init__(self, uri: str, at: str) -> None:
        self.driver: MetadataDriver = open_driver(uri)
        self.begun = threading.Event()
        self.go_on = threading.Event()
        start = self.driver.start

        def started() -> None:
            start()
            ledgers: Any = self.driver.ledgers
            create = ledgers.create

            def late(*given: Any) -> Any:
                done = create(*given) if at == "after" else None
                self.begun.set()
                assert self.go_on.wait(60)
                return done or create(*given)

            ledgers.create = late

        self.driver.start = started  # type: ignore[method-assign]


@contextmanager
def unchanged(uri: str) -> Iterator[None]:
    """Check that the same ledgers exist before and after."""
    with ThreadsBookKeeper(uri) as bk:
        before = set(bk.list_ledgers())
        yield
        assert set(bk.list_ledgers()) == before


@AT
def test_a_create_under_way(uri: str, at: str) -> None:
    """The call ends with ClientClosed, and `close` waits until the ledger was deleted."""

    async def scenario() -> None:
        store = Stalled(uri, at)
        bk = BookKeeper(store.driver)
        await bk.start()
        creating = asyncio.ensure_future(bk.create_ledger().handle())
        await asyncio.to_thread(store.begun.wait)
        closing = asyncio.ensure_future(bk.close())
        with pytest.raises(ClientClosed):
            await creating
        assert not closing.done()
        store.go_on.set()
        await closing

    with unchanged(uri):
        asyncio.run(scenario())


@AT
def test_a_create_of_a_thread(uri: str, at: str) -> None:
    """The same for the client for threads."""
    store = Stalled(uri, at)
    driver: Any = store.driver
    bk = ThreadsBookKeeper(driver)
    with unchanged(uri), ThreadPoolExecutor() as pool:
        bk.start()
        creating = pool.submit(bk.create_ledger)
        assert store.begun.wait(60)
        closing = pool.submit(bk.close)
        with pytest.raises(ClientClosed):
            creating.result(60)
        assert not closing.done()
        store.go_on.set()
        closing.result(60)


def test_a_handle_that_nobody_took(uri: str) -> None:
    """A client that is closed at once deletes the ledger whose future was cancelled too late."""
    with unchanged(uri):
        for _ in range(10):
            bk = ThreadsBookKeeper(uri)
            bk.start()
            futures = [bk.create_ledger_async() for _ in range(4)]
            futures[0].result(60)
            kept = [future.result(60).id for future in futures if not future.cancel()]
            bk.close()
            with ThreadsBookKeeper(uri) as other:
                for ledger in kept:
                    other.delete_ledger(ledger)


def test_a_store_that_does_not_answer(
    uri: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The wait is limited, and the log says that a ledger may stay."""
    monkeypatch.setattr(scope, "TIDY_S", 0.01)

    async def scenario() -> None:
        store = Stalled(uri, "before")
        given_up = asyncio.Event()

        class Told(logging.Handler):
            def emit(self, record: logging.LogRecord) -> None:
                if "a ledger may stay" in record.getMessage():
                    given_up.set()

        told = Told()
        logging.getLogger("bookie.client.ledgers.creating").addHandler(told)
        try:
            bk = BookKeeper(store.driver)
            await bk.start()
            creating = asyncio.ensure_future(bk.create_ledger().handle())
            await asyncio.to_thread(store.begun.wait)
            closing = asyncio.ensure_future(bk.close())
            await given_up.wait()
            store.go_on.set()
            await closing
            with pytest.raises(ClientClosed):
                await creating
        finally:
            logging.getLogger("bookie.client.ledgers.creating").removeHandler(told)

    with caplog.at_level(logging.WARNING):
        asyncio.run(asyncio.wait_for(scenario(), 60))


def test_several_threads_close_a_client(uri: str) -> None:
    """None of them fails, and each returns only when the session with the metadata store has ended."""
    driver: Any = open_driver(uri)
    stop = driver.stop
    stopping, stopped = threading.Event(), threading.Event()

    def slowly() -> None:
        stopping.set()
        assert not stopped.wait(0.5)
        stop()
        stopped.set()

    driver.stop = slowly
    bk = ThreadsBookKeeper(driver)
    bk.start()

    def close(number: int) -> bool:
        assert not number or stopping.wait(60)
        bk.close()
        return stopped.is_set()

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(close, range(4))) == [True] * 4
    bk.close()


def test_several_tasks_close_a_client(uri: str) -> None:
    """Each returns only when the session with the metadata store has ended."""

    async def scenario() -> None:
        driver: Any = open_driver(uri)
        stop, stopped = driver.stop, threading.Event()

        def slowly() -> None:
            assert not stopped.wait(0.5)
            stop()
            stopped.set()

        driver.stop = slowly
        bk = BookKeeper(driver)
        await bk.start()

        async def close() -> bool:
            await bk.close()
            return stopped.is_set()

        assert await asyncio.gather(*(close() for _ in range(3))) == [True] * 3

    asyncio.run(scenario())
