"""Both clients behave as users of Python expect: time limits, futures, representations, iteration, clear refusals."""

import asyncio
import json
import math
import threading
from collections.abc import Callable, Iterator
from concurrent import futures
from contextlib import ExitStack
from typing import Any

import pytest

from bookie.client import BookKeeper, aio
from bookie.errors import (
    ClientClosed,
    IllegalOperation,
    IncorrectParameter,
    LedgerClosed,
    NoSuchLedgerMetadata,
    RequestTimeout,
)
from tests.fixtures.bookies import BookieProcess

pytestmark = pytest.mark.leaks("the client of the module keeps its connections and threads until the last test")


@pytest.fixture(scope="module")
def bk(uri: str) -> Iterator[BookKeeper]:
    """A client for threads."""
    with BookKeeper(uri) as client:
        yield client


def test_calls_end_after_their_time(uri: str, cluster: list[BookieProcess]) -> None:
    """While all bookies are stopped, reads, appends and forces raise a TimeoutError, and work again afterwards."""
    limits = {"callTimeoutSec": "0.05", "addEntryTimeoutSec": 60, "readEntryTimeoutSec": 60}
    with BookKeeper(uri, **limits) as client:
        ledger = client.create_ledger(write_quorum_size=3, timeout=math.inf)
        assert ledger.append(b"one", timeout=math.inf) == 0
        assert ledger.append(b"two", timeout=math.inf) == 1
        with client.open_ledger(ledger.id, recovery=False, timeout=math.inf) as reader:
            with ExitStack() as thawing:
                for bookie in cluster:
                    bookie.freeze()
                    thawing.callback(bookie.thaw)
                late: list[Callable[[], object]] = [
                    lambda: ledger.append(b"three"),
                    ledger.flush,
                    lambda: reader.read(0),
                    lambda: reader.batch_read(0, timeout=0),
                    lambda: next(reader.batches()),
                    lambda: reader.follow(2).next(timeout=0.01),
                    lambda: ledger.append_async(b"four").result(timeout=0.01),
                ]
                for call in late:
                    with pytest.raises(RequestTimeout) as raised:
                        call()
                    assert isinstance(raised.value, TimeoutError)
                    assert raised.value.code == -23
            ledger.flush(timeout=60)
            assert ledger.last_add_confirmed == 3
            assert reader.read_last_add_confirmed(timeout=60) >= 1  # no poll needs to have told of it yet
            assert reader.read(0, 1, timeout=60)[1].payload == b"two"
        ledger.close(timeout=math.inf)


def test_wrong_time_limits_are_refused(bk: BookKeeper) -> None:
    """A limit must be a number of seconds of at least 0."""
    for wrong in ("3", -1, math.nan):
        with pytest.raises(IncorrectParameter, match="timeout="):
            bk.bookies(timeout=wrong)  # type: ignore[arg-type]


def test_pending_adds_are_futures(bk: BookKeeper) -> None:
    """Pending adds work with concurrent.futures and with asyncio, whether they end with success or with an error."""
    with bk.create_ledger_advanced(write_quorum_size=3) as ledger:
        adds = [ledger.append_async(entry, b"x") for entry in range(3)]
        blocked = ledger.append_async(4, b"x")
        done, pending = futures.wait([*adds, blocked], return_when=futures.FIRST_COMPLETED)
        assert done | pending == {*adds, blocked}
        assert blocked in pending
        assert futures.wait(adds) == (set(adds), set())
        assert [add.result() for add in futures.as_completed(adds)] != []
        assert not blocked.cancel()
        assert blocked.running()
        assert not blocked.done()
        with pytest.raises(TimeoutError):
            blocked.exception(timeout=0)
        told = threading.Event()
        blocked.add_done_callback(lambda one: told.set() if one.result() == 4 else None)
        assert "entry 4, pending" in repr(blocked)

        async def awaited() -> int:
            waiting = asyncio.wrap_future(blocked)
            await asyncio.to_thread(ledger.append, 3, b"x")
            return await waiting

        assert asyncio.run(awaited()) == 4
        assert told.wait(60)
        assert blocked.exception() is None
        assert "entry 4, acknowledged" in repr(blocked)
        failed = [ledger.append_async(entry, b"x") for entry in (6, 7)]
        watched = threading.Event()
        failed[0].add_done_callback(lambda _: watched.set())
        ledger.close()
        assert watched.wait(60)
        for one in failed:
            assert isinstance(one.exception(), LedgerClosed)
            assert futures.wait([one]).done == {one}
            with pytest.raises(LedgerClosed):
                one.result()


def test_entries_and_handles_look_natural(bk: BookKeeper, uri: str) -> None:
    """Payloads are bytes for those who want bytes; a read handle is iterated and counted; all of them say what they
    are.
    """
    documents = [{"number": number} for number in range(50)]
    with bk.create_ledger() as ledger:
        assert repr(ledger) == f"<WriteHandle of ledger {ledger.id}, open, LAC -1, 0 adds pending>"
        for document in documents:
            ledger.append(json.dumps(document).encode())
    assert "closed, LAC 49" in repr(ledger)
    with bk.open_ledger(ledger.id) as reader:
        assert len(reader) == 50
        assert [json.loads(entry.payload) for entry in reader] == documents
        assert all(bytes(entry) == entry.payload == entry.data for entry in reader)
        assert repr(reader) == f"<ReadHandle of ledger {ledger.id}, closed, LAC 49>"
        for entry in reader:
            assert entry.id == 0
            break
    with bk.create_ledger() as nothing:
        pass
    with bk.open_ledger(nothing.id) as empty:
        assert list(empty) == []
        assert len(empty) == 0
        assert empty
    assert repr(bk) == f"<BookKeeper of {uri}, started>"

    async def on_asyncio() -> None:
        async with aio.BookKeeper(uri) as client, client.open_ledger(ledger.id) as handle:
            assert [json.loads(entry.payload) async for entry in handle] == documents
            assert len(handle) == 50
            assert repr(handle) == f"<ReadHandle of ledger {ledger.id}, closed, LAC 49>"
            assert repr(client) == repr(bk)

    asyncio.run(on_asyncio())
    assert repr(BookKeeper(uri)) == f"<BookKeeper of {uri}, not started>"


def test_a_follower_is_polled(bk: BookKeeper, uri: str) -> None:
    """A poll that finds nothing raises a TimeoutError and loses nothing; at the end of the ledger it returns None."""

    async def polled(ledger: int, written: asyncio.Event) -> list[bytes]:
        found: list[bytes] = []
        async with aio.BookKeeper(uri) as client, client.open_ledger(ledger, recovery=False) as reader:
            batches = reader.follow()
            while True:
                try:
                    batch = await batches.next(timeout=0.002)
                except TimeoutError:
                    written.set()
                    continue
                if batch is None:
                    return found
                found += [entry.payload for entry in batch]

    async def main() -> None:
        written = asyncio.Event()
        with bk.create_ledger() as ledger:
            polling = asyncio.ensure_future(polled(ledger.id, written))
            await written.wait()
            for number in range(300):
                await asyncio.to_thread(ledger.append, b"%d" % number)
            await asyncio.to_thread(ledger.close)
            assert await polling == [b"%d" % number for number in range(300)]
            with bk.open_ledger(ledger.id) as reader, reader.follow() as batches:
                assert sum(len(batch) for batch in iter(lambda: batches.next(timeout=60), None)) == 300

    asyncio.run(main())


def test_creating_and_deleting_without_waiting(bk: BookKeeper) -> None:
    """The twins return futures of the same results and errors."""
    created = bk.create_ledger_async(password=b"p"), bk.create_ledger_advanced_async(password=b"p")
    with created[0].result(60) as one, created[1].result(60) as two:
        assert one.append(b"x") == 0
        assert two.append(0, b"x") == 0
    for handle in (one, two):
        assert bk.delete_ledger_async(handle.id).result(60) is None
        with pytest.raises(NoSuchLedgerMetadata):
            bk.open_ledger(handle.id, password=b"p")
    with pytest.raises(IncorrectParameter):
        bk.create_ledger_async(ack_quorum_size=0).result(60)


WRONG: list[tuple[str, Callable[[Any], Any]]] = [
    ("password: it must be bytes, not str; write password=b", lambda c: c.create_ledger(password="secret")),
    ("password: it must be bytes", lambda c: c.open_ledger(1, password="secret")),
    ("ensemble_size='3': it must be an integer, not str", lambda c: c.create_ledger(ensemble_size="3")),
    ("ack_quorum_size='2'", lambda c: c.create_ledger(ack_quorum_size="2")),
    ("write_quorum_size=1.5", lambda c: c.create_ledger(write_quorum_size=1.5)),
    ("digest type 5", lambda c: c.create_ledger(digest_type=5)),
    (r"custom_metadata\['a'\]: it must be bytes", lambda c: c.create_ledger(custom_metadata={"a": "b"})),
    ("custom_metadata=5", lambda c: c.create_ledger(custom_metadata=5)),
    ("deferred_sync='no': it must be True or False", lambda c: c.create_ledger(deferred_sync="no")),
    ("ledger_id='5'", lambda c: c.create_ledger_advanced("5")),
    ("ledger_id='5'", lambda c: c.open_ledger("5")),
    ("recovery=0", lambda c: c.open_ledger(5, recovery=0)),
    ("ledger_id=None", lambda c: c.delete_ledger(None)),
    ("ledger_id=b'5'", lambda c: c.ledger_metadata(b"5")),
    ("log 5: a name is text, not int", lambda c: c.logs.get(5)),
    ("ledgers='5'", lambda c: c.logs.create("a", "5")),
    ("ledgers='5': it must be an integer, not str", lambda c: c.logs.append("a", ["5"])),
    ("ledgers=5", lambda c: c.logs.replace("a", 5)),
    ("ledgers=None", lambda c: c.logs.remove("a", [None])),
]
WRONG_IN_LEDGERS: list[tuple[str, Callable[[Any], Any]]] = [
    ("first='0'", lambda h: h.read("0")),
    ("last=1.0", lambda h: h.read(0, 1.0)),
    ("max_count='3'", lambda h: h.batch_read(0, "3")),
    ("first=None", lambda h: h.batches(None)),
    ("max_size='1'", lambda h: h.follow(max_size="1")),
    (r"payload of type str: .* use text.encode\(\)", lambda h: h.append("text")),
    ("payload of type int", lambda h: h.append_async(5)),
]


async def awaited(value: Any) -> Any:
    """Await what must be awaited."""
    return await value if hasattr(value, "__await__") else value


def test_wrong_types_are_one_clear_error(bk: BookKeeper, uri: str) -> None:
    """The text names the argument, its value and the remedy; it does not show passwords, and no ledger is created."""

    def check(says: str, call: Callable[[], object]) -> None:
        with pytest.raises(IncorrectParameter, match=says) as raised:
            call()
        assert "secret" not in str(raised.value)

    async def on_asyncio() -> None:
        async with aio.BookKeeper(uri) as client, client.create_ledger() as writer:
            await writer.append(b"x")
            for cases, subject in ((WRONG, client), (WRONG_IN_LEDGERS, writer)):
                for says, call in cases:
                    with pytest.raises(IncorrectParameter, match=says):
                        await awaited(call(subject))

    for says, call in WRONG:
        check(says, lambda call=call: call(bk))  # type: ignore[misc]
    with bk.create_ledger() as ledger:
        ledger.append(b"x")
        for says, call in WRONG_IN_LEDGERS:
            check(says, lambda call=call: call(ledger))  # type: ignore[misc]
    asyncio.run(on_asyncio())


def test_a_client_that_is_not_started_or_closed(uri: str) -> None:
    """Every call raises the same error in both clients."""
    names = ["bookies", "known_bookies", "metrics", "create_ledger", "list_ledgers"]
    properties = ["features", "logs", "bookie_client", "bookie_info"]

    async def ask(client: Any, name: str) -> object:
        value = getattr(client, name)
        value = value() if name in names else value
        return next(value) if isinstance(value, Iterator) else await awaited(value)

    async def refused(client: Any, error: type[Exception], says: str) -> None:
        for name in names + properties:
            with pytest.raises(error, match=says):
                await ask(client, name)

    async def main() -> None:
        clients = BookKeeper(uri), aio.BookKeeper(uri)
        for client in clients:
            await refused(client, IllegalOperation, "not started: use it in a with statement")
        clients[0].start()
        await clients[1].start()
        clients[0].close()
        await clients[1].close()
        for client in clients:
            await refused(client, ClientClosed, "client is closed")

    asyncio.run(main())
