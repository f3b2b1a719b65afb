"""The metadata store without blocking: the calls of its interface, watches on the event loop, and its end."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bookie.client.bookies import MetadataStore
from bookie.errors import ClientClosed, MetadataVersionConflict, NoSuchLedgerMetadata
from bookie.metadata import open_driver
from bookie.metadata.records.ledger_metadata import DigestType, LedgerMetadata, LedgerState, Segment

OPEN = LedgerMetadata(
    ensemble_size=3,
    write_quorum=2,
    ack_quorum=2,
    segments=(Segment(0, ("a:1", "b:1", "c:1")),),
    digest_type=DigestType.CRC32C,
    ctime_ms=1,
)


def with_store(directory: Path, work: Callable[[MetadataStore], Coroutine[Any, Any, None]]) -> None:
    """Run `work` on a new embedded store."""
    driver = open_driver(f"lmdb://{directory}")
    driver.start()
    driver.cluster.initialize()
    driver.stop()

    async def main() -> None:
        store = await MetadataStore.open(open_driver(f"lmdb://{directory}"))
        try:
            await work(store)
        finally:
            await store.close()

    asyncio.run(main())


def test_ledgers(tmp_path: Path) -> None:
    """Ledgers are created, read, changed by version, listed and deleted."""

    async def work(store: MetadataStore) -> None:
        ledger = await store.new_id()
        made = await store.create(ledger, OPEN)
        assert replace((await store.read(ledger)).value, token=0) == OPEN
        changed = await store.write(ledger, replace(OPEN, state=LedgerState.IN_RECOVERY), made.version)
        with pytest.raises(MetadataVersionConflict):
            await store.write(ledger, OPEN, made.version)
        assert [ids async for ids in store.ledgers()] == [[ledger]]
        await store.delete(ledger, changed.version)
        with pytest.raises(NoSuchLedgerMetadata):
            await store.read(ledger)
        assert await store.info("nobody") is None

    with_store(tmp_path, work)


def test_watches(tmp_path: Path) -> None:
    """Watches of a ledger and of the bookies are reported on the event loop; after `close` no event arrives."""

    async def work(store: MetadataStore) -> None:
        reported: asyncio.Queue[Any] = asyncio.Queue()
        here = threading.get_ident()

        def listen(value: Any) -> None:
            assert threading.get_ident() == here
            reported.put_nowait(value)

        watch = store.watch(5, listen)
        assert await asyncio.wait_for(reported.get(), 60) is None
        made = await store.create(5, OPEN)
        assert (await asyncio.wait_for(reported.get(), 60)).version == made.version
        watch.close()
        bookies = store.watch_bookies(listen, read_only=False)
        assert await asyncio.wait_for(reported.get(), 60) == frozenset()
        await store.write(5, replace(OPEN, state=LedgerState.IN_RECOVERY), made.version)
        await store.run(store.driver.registrations.register, "a:1", b"", read_only=False)
        assert await asyncio.wait_for(reported.get(), 60) == await store.bookies(read_only=False) == {"a:1"}
        bookies.close()
        assert reported.empty()

    with_store(tmp_path, work)


def test_no_cluster_and_no_more(tmp_path: Path) -> None:
    """A store without a cluster and a closed store raise errors."""

    async def work(store: MetadataStore) -> None:
        await store.close()
        with pytest.raises(ClientClosed):
            await store.read(5)

    with_store(tmp_path / "one", work)


AT_EXIT = """
import asyncio, atexit, sys
from bookie.client.bookies import MetadataStore
from bookie.metadata import open_driver

loop = asyncio.new_event_loop()
store = loop.run_until_complete(MetadataStore.open(open_driver(sys.argv[1])))
atexit.register(lambda: print("closed", loop.run_until_complete(store.close())))
"""


def test_a_store_closes_while_the_interpreter_ends(tmp_path: Path) -> None:
    """In `atexit`, when pools accept no more work, the driver is stopped all the same."""
    driver = open_driver(f"lmdb://{tmp_path}")
    driver.start()
    driver.cluster.initialize()
    driver.stop()
    command = [sys.executable, "-c", AT_EXIT, f"lmdb://{tmp_path}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert (done.stdout, done.stderr) == ("closed None\n", "")
