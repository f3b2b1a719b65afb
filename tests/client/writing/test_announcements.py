"""The end of a ledger reaches its bookies before a client leaves (BP-32), however the ledger ends."""

import asyncio
import contextlib
import logging
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from bookie.client import BookKeeper, aio
from bookie.client.bookies.announcing import Announcements
from bookie.errors import BookieUnavailable
from bookie.metrics.text import write
from tests.fixtures.certificates import Authority
from tests.fixtures.whole_bookie import Running, whole_bookie

pytestmark = pytest.mark.leaks("gRPC keeps threads of its own for the life of the process")

SIZES: dict[str, Any] = {"ensemble_size": 3, "write_quorum_size": 3, "ack_quorum_size": 2}
TIMEOUTS = {"connect_timeout_s": 60, "add_timeout_s": 60, "read_timeout_s": 60}


@contextmanager
def bookies_in(directory: Path, count: int, **given: str) -> Iterator[dict[str, Running]]:
    """Run bookies with an entry log per ledger in this process; the first one owns the metadata store."""
    with ExitStack() as stack:
        running: dict[str, Running] = {}
        for name in ["one", "two", "three", "four"][:count]:
            (directory / name).mkdir()
            settings = {"adminPort": "0", "bookieId": name, "entryLogPerLedgerEnabled": "true", **given}
            if running:
                settings["metadataServiceUri"] = running["one"].uri
            running[name] = stack.enter_context(whole_bookie(directory / name, **settings))
        yield running


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Running]]:
    """Three bookies for all tests that leave them intact."""
    with bookies_in(tmp_path_factory.mktemp("three"), 3) as running:
        yield running


def ended(running: dict[str, Running]) -> dict[str, float]:
    """Return how many ledgers ended at each bookie, by write closes, fences and refused adds."""
    return {
        name: sum(
            sample.value
            for family in one.bookie.metrics()
            if family.name == "pybookie_ledgers_write_closed_total"
            for sample in family.samples
        )
        for name, one in running.items()
    }


@pytest.fixture
def one_more(three: dict[str, Running]) -> Iterator[str]:
    """Yield the metadata URI, and assert in the end that one more ledger ended at each bookie."""
    before = ended(three)
    yield three["one"].uri
    assert ended(three) == {name: count + 1 for name, count in before.items()}


KINDS: dict[str, Callable[[BookKeeper], None]] = {}


def kind(scenario: Callable[[BookKeeper], None]) -> Callable[[BookKeeper], None]:
    """Register a way in which a ledger is written and ends."""
    KINDS[scenario.__name__] = scenario
    return scenario


@kind
def normal(bk: BookKeeper) -> None:
    """Close a ledger without entries above the LAC."""
    with bk.create_ledger(**SIZES) as ledger:
        ledger.append(b"x")


@kind
def after_an_error(bk: BookKeeper) -> None:
    """Leave the block by an exception of the application."""
    with contextlib.suppress(LookupError), bk.create_ledger(**SIZES) as ledger:
        ledger.append(b"x")
        raise LookupError


@kind
def advanced(bk: BookKeeper) -> None:
    """Close a ledger whose writer chooses the ids."""
    with bk.create_ledger_advanced(**SIZES) as ledger:
        ledger.append(0, b"x")


@kind
def deferred(bk: BookKeeper) -> None:
    """Close a ledger with deferred sync, which needs V3."""
    with bk.create_ledger(**SIZES, deferred_sync=True) as ledger:
        ledger.append(b"x")


@pytest.mark.parametrize(
    ("name", "v2"), [(name, v2) for name in KINDS for v2 in (False, True) if name != "deferred" or not v2]
)
def test_a_writer_that_closes_and_leaves_at_once(one_more: str, name: str, v2: bool) -> None:
    """Each bookie of the ensemble knows of the end when the client is closed, also if only V2 connections existed."""
    with BookKeeper(one_more, use_v2_wire_protocol=v2, **TIMEOUTS) as bk:
        KINDS[name](bk)
        assert outcomes(bk)["partly"] == outcomes(bk)["failed"] == 0


@pytest.mark.parametrize("v2", [False, True])
def test_on_asyncio(one_more: str, v2: bool) -> None:
    """The same on asyncio."""

    async def main() -> None:
        bk = aio.BookKeeper(one_more, use_v2_wire_protocol=v2, **TIMEOUTS)
        async with bk, bk.create_ledger(**SIZES) as ledger:
            await ledger.append(b"x")

    asyncio.run(main())


AT_EXIT = """
import sys
from bookie.client import BookKeeper
bk = BookKeeper(sys.argv[1], use_v2_wire_protocol=sys.argv[2] == "2", tls_trust_store=sys.argv[3])
bk.start()
with bk.create_ledger(ensemble_size=3, write_quorum_size=3, ack_quorum_size=2) as ledger:
    ledger.append(b"x")
"""


@pytest.mark.parametrize("version", ["2", "3"])
def test_a_process_that_exits(one_more: str, version: str) -> None:
    """A process that ends without closing its client announces what it closed."""
    subprocess.run([sys.executable, "-c", AT_EXIT, one_more, version, ""], check=True)


@pytest.mark.parametrize("tls", [False, True])
def test_a_process_that_exits_where_bookies_have_names(tmp_path: Path, *, tls: bool) -> None:
    """The same where bookies are registered by host name: the threads that look up names have ended by then.

    The client writes in V2, so it has to connect in V3 for its announcement.
    """
    keys, trusted = {"advertisedAddress": "localhost"}, ""
    if tls:
        authority = Authority(tmp_path / "ca")
        party = authority.issue("bookie", hosts=["localhost"])
        keys |= {"tlsProviderFactoryClass": "org.apache.bookkeeper.tls.TLSContextFactory", "tlsKeyStoreType": "PEM"}
        keys |= {"tlsKeyStore": str(party.key), "tlsCertificatePath": str(party.certificate)}
        trusted = str(authority.certificate)
    with bookies_in(tmp_path, 3, **keys) as named:
        subprocess.run([sys.executable, "-c", AT_EXIT, named["one"].uri, "2", trusted], check=True)
        assert ended(named) == dict.fromkeys(named, 1)


def test_a_writer_that_is_fenced(three: dict[str, Running]) -> None:
    """The recovery of an open ledger ends it at each bookie by its fence."""
    before = ended(three)
    uri = three["one"].uri
    with BookKeeper(uri, **TIMEOUTS) as writing, BookKeeper(uri, **TIMEOUTS) as reading:
        ledger = writing.create_ledger(**SIZES)
        ledger.append(b"x")
        reading.open_ledger(ledger.id).close()
    assert all(count > before[name] for name, count in ended(three).items())


def test_a_reader_that_closes(three: dict[str, Running]) -> None:
    """Readers end no ledger, neither an open one nor a closed one that they read to its end."""
    uri = three["one"].uri
    with BookKeeper(uri, **TIMEOUTS) as writing, writing.create_ledger(**SIZES) as ledger:
        before = ended(three)
        for payload in (b"x", b"y"):
            ledger.append(payload)
        with BookKeeper(uri, **TIMEOUTS) as reading, reading.open_ledger(ledger.id, recovery=False) as reader:
            assert len(reader.read(0, 0)) == 1
        assert ended(three) == before
    before = ended(three)
    with BookKeeper(uri, **TIMEOUTS) as reading, reading.open_ledger(ledger.id) as reader:
        assert len(reader.read(0, 1)) == 2
    assert ended(three) == before


def test_a_bookie_that_joins_in_a_recovery(tmp_path: Path) -> None:
    """A bookie that replaces a lost one while a ledger is recovered was never fenced; the end is announced to it."""
    with bookies_in(tmp_path, 4) as four:
        uri = four["one"].uri
        with BookKeeper(uri, **TIMEOUTS) as writing, BookKeeper(uri, use_v2_wire_protocol=True, **TIMEOUTS) as reading:
            ledger = writing.create_ledger(**{**SIZES, "ack_quorum_size": 3})
            ledger.append(b"x")
            ledger.append(b"y")  # above the LAC that the bookies know, so a recovery writes it again
            ensemble = ledger.metadata.segments[-1].bookies
            lost = next(name for name in ensemble if name != "one")
            [joining] = {*four} - {*ensemble}
            before = ended(four)[joining]
            four[lost].bookie.stop()
            with reading.open_ledger(ledger.id) as reader:
                assert reader.last_add_confirmed == 1
                assert joining in reader.metadata.segments[-1].bookies
        assert ended(four)[joining] == before + 1


def outcomes(bk: BookKeeper) -> dict[str, int]:
    """Return the client's counts of announcements, by outcome, as they are written on a page."""
    lines = write(bk.metrics()).decode().splitlines()
    start = 'bookie_client_write_closes_total{outcome="'
    counts = (line.removeprefix(start).split('"} ') for line in lines if line.startswith(start))
    return {name: int(count) for name, count in counts}


def test_outcomes_are_counted(three: dict[str, Running]) -> None:
    """Each announced ledger counts once."""
    with BookKeeper(three["one"].uri, **TIMEOUTS) as bk:
        assert outcomes(bk) == {"succeeded": 0, "partly": 0, "failed": 0}
        for _ in range(2):
            normal(bk)
        bk._thread.run(bk._aio.bookie_client.announcements.settle())
        assert outcomes(bk) == {"succeeded": 2, "partly": 0, "failed": 0}


def test_one_line_for_each_outcome(caplog: pytest.LogCaptureFixture) -> None:
    """The line of a partial success names the bookies that failed; if nobody listens, nothing is said or counted."""
    caplog.set_level(logging.DEBUG, "bookie.client.bookies.announcing")

    async def told(bookie: str, ledger: int, key: bytes) -> bool:
        assert (ledger, key) == (7, b"key")
        if bookie == "down":
            raise BookieUnavailable("down: nobody there")
        return bookie == "up"

    async def main() -> None:
        announcements = Announcements(told)
        for bookies in (["up", "deaf"], ["up", "down"], ["down", "deaf"], ["deaf"]):
            announcements.start(7, b"key", bookies)
            await announcements.settle()
        counts = [(dict(sample.labels)["outcome"], sample.value) for sample in announcements.family().samples]
        assert counts == [("succeeded", 1), ("partly", 1), ("failed", 1)]

    asyncio.run(main())
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("DEBUG", "write close succeeded ledger=7 bookies=1"),
        ("INFO", "write close succeeded partly ledger=7 failed at down (down: nobody there)"),
        ("INFO", "write close failed ledger=7: down (down: nobody there)"),
    ]
