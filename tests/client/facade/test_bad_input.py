"""A user's mistakes raise the right exception exactly once, with a text that names the subject, in both clients."""

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from bookie.client import BookKeeper, aio
from bookie.errors import (
    BookKeeperError,
    ConfigurationError,
    DigestMismatch,
    IllegalOperation,
    IncorrectParameter,
    LedgerClosed,
    LedgerExists,
    LedgerFenced,
    MetadataStoreError,
    NoSuchEntry,
    NoSuchLedgerMetadata,
    NotEnoughBookies,
    ReadError,
    UnauthorizedAccess,
)
from bookie.metadata import open_driver

pytestmark = pytest.mark.leaks("the clients of a module keep their connections, and gRPC threads of its own")

ENTRIES = 5
END = 1 << 63
LARGEST = END - 1
"""The largest id of an entry; `END` is the first number that is none."""


class Both(NamedTuple):
    """A client of each kind, and the event loop of the second."""

    sync: BookKeeper
    runner: asyncio.Runner
    aio: aio.BookKeeper
    ledger: int
    """The ledger is closed, with this many entries and the password "right"."""


@pytest.fixture(scope="module")
def both(uri: str) -> Iterator[Both]:
    """Both clients, and a ledger to make mistakes with."""
    with BookKeeper(uri) as sync, asyncio.Runner() as runner:
        with sync.create_ledger(write_quorum_size=3, password=b"right") as ledger:
            for _ in range(ENTRIES):
                ledger.append(b"x" * 100)
        other = aio.BookKeeper(uri)
        runner.run(other.start())
        yield Both(sync, runner, other, ledger.id)
        runner.run(other.close())


class Case(NamedTuple):
    """`call` is made with what `given` returns; both get the client or handle, and may return something to await."""

    name: str
    error: type[BookKeeperError]
    says: str
    call: Callable[[Any], Any]


CLIENT = [
    Case("wrong password", UnauthorizedAccess, "ledger {ledger}: wrong", lambda c: c[0].open_ledger(c[1])),
    Case("unknown ledger", NoSuchLedgerMetadata, "ledger 987654321", lambda c: c[0].open_ledger(987654321)),
    Case("negative ledger", IncorrectParameter, "-1", lambda c: c[0].open_ledger(-1)),
    Case("negative ledger deleted", IncorrectParameter, "-1", lambda c: c[0].delete_ledger(-1)),
    Case("negative ledger's metadata", IncorrectParameter, "-1", lambda c: c[0].ledger_metadata(-1)),
    Case("unknown ledger's metadata", NoSuchLedgerMetadata, "ledger 98765", lambda c: c[0].ledger_metadata(98765)),
    Case("too few bookies", NotEnoughBookies, "4 bookies needed, 3", lambda c: c[0].create_ledger(ensemble_size=4)),
    Case("no quorum", IncorrectParameter, "3, 3, 0", lambda c: c[0].create_ledger(ack_quorum_size=0)),
    Case("quorum too large", IncorrectParameter, "3, 4, 3", lambda c: c[0].create_ledger(write_quorum_size=4)),
    Case("unknown digest", IncorrectParameter, "'MD5'", lambda c: c[0].create_ledger(digest_type="MD5")),
    Case("a ledger's id twice", LedgerExists, "ledger {ledger}", lambda c: c[0].create_ledger_advanced(c[1])),
    Case("an id too large", IncorrectParameter, "2\\*\\*63", lambda c: c[0].create_ledger_advanced(END)),
    Case("a ledger's id too large", NoSuchLedgerMetadata, "9223372036854775808", lambda c: c[0].open_ledger(END)),
    Case("metadata, too large", NoSuchLedgerMetadata, "9223372036854775808", lambda c: c[0].ledger_metadata(END)),
    Case("started twice", IllegalOperation, "make another", lambda c: c[0].start()),
]

READING = [
    Case("negative entry", IncorrectParameter, "ledger {ledger}: entries -1", lambda r: r.read(-1)),
    Case("backwards", IncorrectParameter, "entries 3 to 2", lambda r: r.read(3, 2)),
    Case("above the LAC", ReadError, "ledger {ledger}, entry 5", lambda r: r.read(0, ENTRIES)),
    Case("BR1: a batch from below", IncorrectParameter, "entries -1", lambda r: r.batch_read(-1)),
    Case("BR1: a batch above the LAC", ReadError, "ledger {ledger}, entry 5", lambda r: r.batch_read(ENTRIES)),
    Case("BR2: a negative count", IncorrectParameter, "max_count -1", lambda r: r.batch_read(0, -1)),
    Case("unconfirmed from below", IncorrectParameter, "entries -2", lambda r: r.read_unconfirmed(-2)),
    Case("unconfirmed size", IncorrectParameter, "max_size -1", lambda r: r.batch_read_unconfirmed(0, 1, -1)),
    Case("a range from below", IncorrectParameter, "entries -1", lambda r: r.batches(-1)),
    Case("a range above the LAC", ReadError, "entry 9", lambda r: r.batches(0, 9)),
    Case("follow from below", IncorrectParameter, "-1", lambda r: r.follow(-1)),
    Case("an entry too large", IncorrectParameter, "< 2\\*\\*63", lambda r: r.read_unconfirmed(END)),
    Case("a batch too large", IncorrectParameter, "< 2\\*\\*63", lambda r: r.batch_read_unconfirmed(END)),
    Case("follow too large", IncorrectParameter, "below 2\\*\\*63", lambda r: r.follow(END)),
    Case("waiting too large", IncorrectParameter, "2\\*\\*63", lambda r: r.read_last_add_confirmed_and_entry(END, 9)),
    Case("a batch behind the end", NoSuchEntry, "entry 8", lambda r: r.batch_read_unconfirmed(8)),
    Case("the largest entry", NoSuchEntry, str(LARGEST), lambda r: r.read_unconfirmed(LARGEST)),
    Case("the largest entries", NoSuchEntry, str(LARGEST - 9), lambda r: r.read_unconfirmed(LARGEST - 9, LARGEST)),
    Case("the largest batch", NoSuchEntry, str(LARGEST), lambda r: r.batch_read_unconfirmed(LARGEST)),
    Case("the largest batch of two", NoSuchEntry, str(LARGEST - 1), lambda r: r.batch_read_unconfirmed(LARGEST - 1)),
    Case("too patient", IncorrectParameter, "9000", lambda r: r.read_last_add_confirmed_and_entry(9, 9000)),
]

WRITING = [
    Case("too large", IncorrectParameter, "ledger {ledger}", lambda w: w.append(b"x" * (6 << 20))),
    Case("above what was added", ReadError, "ledger {ledger}, entry 1", lambda w: w.read(1)),
]


async def awaited(value: Any) -> Any:
    """Await the result of a call of the asyncio client."""
    return await value if hasattr(value, "__await__") else value


def check(case: Case, ledger: int, sync: Callable[[], Any], on_asyncio: Callable[[], Any]) -> None:
    """Check that both clients raise the error."""
    says = case.says.replace("{ledger}", str(ledger))
    for call in (sync, on_asyncio):
        with pytest.raises(case.error, match=says) as raised:
            call()
        assert type(raised.value) is case.error
        assert "\n" not in str(raised.value)


def of(case: Case) -> str:
    """Return the id of a parameter."""
    return case.name


@pytest.mark.parametrize("case", CLIENT, ids=of)
def test_calls_of_the_client(both: Both, case: Case) -> None:
    """Mistakes in calls of the client are found before any bookie is asked."""
    on_asyncio = lambda: both.runner.run(awaited(case.call((both.aio, both.ledger))))  # noqa: E731
    check(case, both.ledger, lambda: case.call((both.sync, both.ledger)), on_asyncio)


@pytest.mark.parametrize("case", READING, ids=of)
def test_calls_of_a_reader(both: Both, case: Case) -> None:
    """Arguments outside their range and missing entries raise errors."""
    with both.sync.open_ledger(both.ledger, password=b"right") as reader:

        async def on_asyncio() -> None:
            async with both.aio.open_ledger(both.ledger, password=b"right") as handle:
                await awaited(case.call(handle))

        check(case, both.ledger, lambda: case.call(reader), lambda: both.runner.run(on_asyncio()))
        reader.close()
        with pytest.raises(LedgerClosed, match=f"ledger {both.ledger}"):
            reader.read(0)
        assert reader.last_add_confirmed == ENTRIES - 1


@pytest.mark.parametrize("case", WRITING, ids=of)
def test_calls_of_a_writer(both: Both, case: Case) -> None:
    """After a mistake the ledger can still be written."""
    with both.sync.create_ledger() as writer:
        writer.append(b"first")

        async def on_asyncio() -> None:
            async with both.aio.create_ledger() as handle:
                await handle.append(b"first")
                try:
                    await awaited(case.call(handle))
                finally:
                    assert await handle.append(b"second") == 1

        with pytest.raises(case.error, match=case.says.replace("{ledger}", str(writer.id))):
            case.call(writer)
        with pytest.raises(case.error):
            both.runner.run(on_asyncio())
        assert writer.append(b"second") == 1
    with pytest.raises(LedgerClosed, match=f"ledger {writer.id}"):
        writer.append(b"third")


def test_zero_counts_and_sizes_are_no_limits(both: Both) -> None:
    """BR2: a count or size of 0 means no limit, with and without batch reads."""
    for kwargs in ({}, {"max_count": 0}, {"max_size": 0}, {"max_size": -1}, {"max_count": 0, "max_size": 0}):
        with both.sync.open_ledger(both.ledger, password=b"right") as reader:
            assert len(reader.batch_read(0, **kwargs)) == ENTRIES
            assert len(reader.batch_read(0, 0, 1)) == 1


def test_a_ledger_deleted_under_the_writer(both: Both) -> None:
    """Adds to a deleted ledger still succeed, since its bookies know it; the close reports that it does not exist."""
    writer = both.sync.create_ledger()
    writer.append(b"x")
    both.sync.delete_ledger(writer.id)
    with pytest.raises(NoSuchLedgerMetadata, match=f"ledger {writer.id}"):
        writer.close()


def test_a_ledger_fenced_under_the_writer(both: Both) -> None:
    """All outstanding adds end, the first one with the fence; later ones find the ledger closed."""
    writer = both.sync.create_ledger(write_quorum_size=3)
    writer.append(b"x")
    with both.sync.open_ledger(writer.id):
        pending = [writer.append_async(b"late")]
        with contextlib.suppress(LedgerClosed):  # the refusal of the first may arrive before the last is sent
            pending.extend(writer.append_async(b"late") for _ in range(99))
        for append in pending:
            with pytest.raises(LedgerFenced, match=f"ledger {writer.id}, entry "):
                append.result()
        with pytest.raises(LedgerClosed, match=f"ledger {writer.id}"):
            writer.append(b"later")


def test_a_digest_that_is_not_the_ledgers(uri: str, both: Both) -> None:
    """Without autodetection, the wrong digest type is refused before any bookie is asked."""
    with (
        BookKeeper(uri, enableDigestTypeAutodetection=False) as bk,
        pytest.raises(DigestMismatch, match=f"ledger {both.ledger} has CRC32 digests, not CRC32C"),
    ):
        bk.open_ledger(both.ledger, password=b"right", digest_type="CRC32C")


@pytest.mark.parametrize(
    ("error", "says", "config"),
    [
        (ConfigurationError, "addEntryTimeoutSec", {"addEntryTimeoutSecs": 5}),
        (ConfigurationError, "true or false", {"useV2WireProtocol": "perhaps"}),
    ],
)
def test_settings(uri: str, error: type[BookKeeperError], says: str, config: dict[str, Any]) -> None:
    """Wrong settings are refused when the client is created."""
    for kind in (BookKeeper, aio.BookKeeper):
        with pytest.raises(error, match=says):
            kind(uri, **config)


def test_metadata_out_of_reach() -> None:
    """Each start raises within the session timeout if the metadata store is unreachable, and leaks nothing."""
    nobody = "grpc://127.0.0.1:1"
    with pytest.raises(MetadataStoreError):
        BookKeeper(nobody, zkTimeout=300).start()

    async def start() -> None:
        await aio.BookKeeper(nobody, zkTimeout=300).start()

    with pytest.raises(MetadataStoreError):
        asyncio.run(start())


def test_no_bookies_at_all(tmp_path: Path) -> None:
    """A client connects to a cluster without bookies; creating a ledger says how many bookies it needs."""
    uri = f"lmdb://{tmp_path}/metadata"
    driver = open_driver(uri)
    driver.start()
    driver.cluster.initialize()
    driver.stop()
    says = "^2 bookies needed, 0 are writable: start more"
    with BookKeeper(uri) as bk:
        assert bk.bookies() == frozenset()
        with pytest.raises(NotEnoughBookies, match=says):
            bk.create_ledger(ensemble_size=2)
        assert list(bk.list_ledgers()) == []

    async def create() -> None:
        async with aio.BookKeeper(uri) as bk:
            await bk.create_ledger(ensemble_size=2)

    with pytest.raises(NotEnoughBookies, match=says):
        asyncio.run(create())


@pytest.mark.parametrize("exists", [False, True])
def test_a_client_creates_no_store(tmp_path: Path, exists: bool) -> None:
    """A directory that is named wrong is an error, and nothing is created or changed."""
    place = tmp_path / "metadata"
    if exists:
        place.mkdir()
        (place / "of-somebody-else").touch()
    before = sorted(tmp_path.rglob("*"))

    async def start() -> None:
        await aio.BookKeeper(f"lmdb://{place}").start()

    with pytest.raises(IllegalOperation, match="metadata: no metadata store in this directory; name"):
        BookKeeper(f"lmdb://{place}").start()
    with pytest.raises(IllegalOperation, match="no metadata store"):
        asyncio.run(start())
    assert sorted(tmp_path.rglob("*")) == before


def test_a_client_that_was_not_started(uri: str) -> None:
    """A call before `start` says that the client is not started."""
    with pytest.raises(BookKeeperError, match="not started"):
        BookKeeper(uri).create_ledger()
    with pytest.raises(IllegalOperation, match="not started"):
        asyncio.run(awaited(aio.BookKeeper(uri).create_ledger()))
