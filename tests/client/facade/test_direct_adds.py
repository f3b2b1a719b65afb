"""Adds over direct connections, on real bookies: the same results as by the event loop, and the way back to it."""

import contextlib
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import FrameType
from typing import Any

import pytest

from bookie.client import BookKeeper
from bookie.errors import BookKeeperError, ClientClosed, IncorrectParameter, LedgerClosed, LedgerFenced, RequestTimeout
from tests.client.facade.direct_adds import (
    PATIENCE_S,
    SIZES,
    WAIT_S,
    check,
    created,
    frozen,
    nothing_owed,
    on,
    only_direct,
    payload,
    wait_until,
    warm,
)
from tests.fixtures.bookies import BookieProcess, metadata_of
from tests.fixtures.forked import closed_in_a_child


@pytest.fixture(params=[True, False], ids=["V2", "V3"])
def v2(request: pytest.FixtureRequest) -> bool:
    """Whether the client speaks V2."""
    return bool(request.param)


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("digest", ["CRC32C", "HMAC"])
def test_entries_are_added(uri: str, v2: bool, sizes: tuple[int, int, int], digest: str) -> None:
    """Ids, LAC and length are those of any add, every copy is there, and the event loop takes no part."""
    with BookKeeper(uri, useV2WireProtocol=v2) as bk:
        with created(bk, sizes, digest_type=digest, password=b"secret") as ledger:
            first = warm(ledger)
            with only_direct(ledger):
                for entry in range(first, first + 50):
                    nothing_owed(ledger)
                    assert ledger.append(payload(entry)) == entry == ledger.last_add_confirmed == ledger.last_add_pushed
                    assert ledger.length == sum(len(payload(k)) for k in range(entry + 1))
            for entry in range(first, first + 50):
                assert bytes(ledger.read(entry)[0].data) == payload(entry)
        with bk.open_ledger(ledger.id, password=b"secret", recovery=False) as reader:
            assert reader.last_add_confirmed == first + 49
            assert [bytes(one.data) for one in reader.read(0, first + 49)] == [payload(k) for k in range(first + 50)]


def test_an_asyncio_client_reads_on(uri: str) -> None:
    """Each entry carries the LAC, so a reader without recovery sees all but the last one."""
    with BookKeeper(uri, useV2WireProtocol=True) as bk, created(bk) as ledger:
        first = warm(ledger)
        with only_direct(ledger):
            for entry in range(first, first + 5):
                ledger.append(payload(entry))
        with bk.open_ledger(ledger.id, recovery=False) as reader:
            assert reader.read_last_add_confirmed() >= first + 3


def test_sizes(uri: str, v2: bool) -> None:
    """Empty entries and large ones are added; those that do not fit are refused, and the handle can still be used."""
    with BookKeeper(uri, useV2WireProtocol=v2) as bk, created(bk) as ledger:
        first = warm(ledger)
        for entry, size in enumerate([0, 1, 255 << 10, 256 << 10, (256 << 10) + 1, 3 << 20, 0], start=first):
            assert ledger.append(memoryview(bytes(size))) == entry
            assert len(ledger.read(entry)[0].data) == size
        with pytest.raises(IncorrectParameter, match=f"^ledger {ledger.id}: the entry needs .* the limit is"):
            ledger.append(bytes(6 << 20))
        with pytest.raises(IncorrectParameter, match="payload of type"):
            ledger.append("text")  # type: ignore[arg-type]
        with pytest.raises(IncorrectParameter, match="timeout"):
            ledger.append(b"", timeout=-1)
        assert ledger.append(b"last", timeout=60) == first + 7


def test_what_is_left_to_the_event_loop(uri: str) -> None:
    """Ledgers with other promises, limits of a rate, and clients without direct connections."""
    cases: tuple[tuple[dict[str, Any], dict[str, Any]], ...] = (
        ({"maxDirectConnectionsPerBookie": 0}, {}),
        ({"throttle": 1000}, {}),
        ({}, {"deferred_sync": True}),
    )
    for settings, options in cases:
        with BookKeeper(uri, **settings) as bk, created(bk, **options) as ledger:
            assert ledger._direct_adds.append(b"x") is None
            assert [ledger.append(b"x") for _ in range(3)] == [0, 1, 2]


def test_threads_and_calls_of_all_kinds(uri: str, v2: bool) -> None:
    """Ids have no gaps, and each belongs to its payload, whoever adds, flushes and reads at the same time."""
    with BookKeeper(uri, useV2WireProtocol=v2, maxOutstandingAdds=3) as bk:
        with created(bk, (3, 2, 2)) as ledger:
            warm(ledger)
            start = ledger.last_add_pushed + 1

            def work(number: int) -> dict[int, bytes]:
                found = {}
                for k in range(60):
                    data = b"%d.%d" % (number, k)
                    if number < 3 or k % 2:
                        found[ledger.append(data)] = data
                    else:
                        found[ledger.append_async(data).result(WAIT_S)] = data
                    if k % 10 == number:
                        ledger.flush()
                return found

            with ThreadPoolExecutor(4) as threads:
                expected = {entry: data for found in threads.map(work, range(4)) for entry, data in found.items()}
            assert sorted(expected) == list(range(start, start + 240))
            assert ledger.last_add_confirmed == start + 239
        with bk.open_ledger(ledger.id) as reader:
            for batch in reader.batches(start):
                assert all(bytes(entry.data) == expected[entry.id] for entry in batch)


def test_a_fenced_ledger(uri: str, v2: bool) -> None:
    """L1: after another client recovered the ledger, an add fails with LedgerFenced, and all later ones fail."""
    with BookKeeper(uri, useV2WireProtocol=v2) as bk, BookKeeper(uri) as other:
        ledger = created(bk, (3, 3, 3))
        count = warm(ledger)
        with other.open_ledger(ledger.id) as reader:
            assert reader.last_add_confirmed == count - 1
        with pytest.raises(LedgerFenced):
            ledger.append(b"late")
        with pytest.raises(LedgerClosed):
            ledger.append(b"later")
        assert ledger.last_add_confirmed == count - 1
        with contextlib.suppress(BookKeeperError):
            ledger.close()
        check(other, ledger.id, count)


def test_a_closed_handle_and_a_closed_client(uri: str) -> None:
    """The errors are those of any add."""
    with BookKeeper(uri) as bk:
        ledger, second = created(bk), created(bk)
        count = warm(ledger)
        warm(second)
        ledger.close()
        with pytest.raises(LedgerClosed):
            ledger.append(b"late")
        check(bk, ledger.id, count)
    with pytest.raises(ClientClosed):
        second.append(b"late")


def test_a_forked_child(uri: str) -> None:
    """A child gets ClientClosed and leaves the parent's connections alone."""
    with BookKeeper(uri) as bk, created(bk) as ledger:
        first = warm(ledger)
        assert closed_in_a_child(lambda: ledger.append(b"child"))
        with only_direct(ledger):
            assert ledger.append(b"parent") == first


@pytest.mark.thorough
def test_a_bookie_dies(bookies: Callable[..., list[BookieProcess]], v2: bool) -> None:
    """L2, L6: when a bookie of the ensemble is killed, the entry goes to another one, and no entry is lost."""
    cluster = bookies(4)
    with BookKeeper(metadata_of(cluster), useV2WireProtocol=v2) as bk:
        with created(bk, (3, 2, 2)) as ledger:
            first = warm(ledger)
            ensemble = ledger.metadata.segments[0].bookies
            next(one for one in cluster[1:] if one.id in ensemble).kill()
            for entry in range(first, first + 20):
                assert ledger.append(payload(entry)) == entry
            assert len(ledger._handle.writer.known.metadata.segments) == 2
            count = warm(ledger, first + 20)
        check(bk, ledger.id, count)


@pytest.mark.thorough
def test_a_full_bookie(bookies: Callable[..., list[BookieProcess]], v2: bool) -> None:
    """A bookie that has become read-only is replaced, and the add that it refused is stored by others."""
    cluster = bookies(3)
    with BookKeeper(metadata_of(cluster), useV2WireProtocol=v2) as bk:
        with created(bk, (2, 2, 2)) as ledger:
            first = warm(ledger)
            full = next(
                one for one in cluster if one.id in ledger.metadata.segments[0].bookies and one is not cluster[0]
            )
            full.settings["forceReadOnlyBookie"] = "true"
            full.restart()
            for entry in range(first, first + 5):
                assert ledger.append(payload(entry)) == entry
            assert full.id not in ledger._handle.writer.known.metadata.segments[-1].bookies
        check(bk, ledger.id, first + 5)


def test_a_bookie_restarts(bookies: Callable[..., list[BookieProcess]], v2: bool) -> None:
    """A new connection is used only after the metadata store has said that the ledger is open."""
    (one,) = bookies(1)
    with BookKeeper(metadata_of([one]), useV2WireProtocol=v2) as bk, created(bk) as ledger:
        first = warm(ledger)
        routes = ledger._direct_adds._routes
        assert routes is not None
        for peer in bk._aio.bookie_client._peers.values():
            while peer.direct._idle:
                link = peer.direct._idle.pop()
                link.close()
                peer.direct.give(link)
        got = ledger._direct_adds.append(b"not over a new connection")
        assert got is None
        assert ledger.last_add_pushed == first - 1
        assert warm(ledger, first) > first
        assert ledger._direct_adds._routes is not routes


@pytest.mark.thorough
def test_a_hung_bookie(bookies: Callable[..., list[BookieProcess]], v2: bool) -> None:
    """The event loop goes on with an add that a bookie does not answer; the time limit of the call holds, and the
    entry is added when the bookie answers.
    """
    store, one = bookies(2)
    with BookKeeper(metadata_of([store]), useV2WireProtocol=v2, addEntryTimeoutSec=60) as bk:
        with on(bk, one) as ledger:
            first = warm(ledger, patience_s=PATIENCE_S)
            pool = bk._aio.bookie_client._peers[one.id].direct
            with frozen(one), pytest.raises(RequestTimeout, match=f"entry {first}"):
                ledger.append(payload(first), timeout=1.0)
            assert ledger._direct_adds._routes is None
            assert pool._avoided_until == 0.0
            for entry in range(first + 1, first + 4):
                assert ledger.append(payload(entry)) == entry
        check(bk, ledger.id, first + 4)


@pytest.mark.thorough
def test_closing_while_an_add_waits(bookies: Callable[..., list[BookieProcess]]) -> None:
    """L3: an add that is pending when another thread closes the ledger fails; the ledger ends before it."""
    store, one = bookies(2)
    with BookKeeper(metadata_of([store]), useV2WireProtocol=True, addEntryTimeoutSec=60) as bk:
        ledger = on(bk, one)
        first = warm(ledger, patience_s=PATIENCE_S)
        with ThreadPoolExecutor(1) as threads, frozen(one):
            adding = threads.submit(ledger.append, b"pending")
            wait_until(lambda: ledger._handle.writer.pending)
            closing = bk._thread.submit(ledger._handle.close())
            with pytest.raises(LedgerClosed):
                adding.result(WAIT_S)
        closing.result(WAIT_S)
        check(bk, ledger.id, first)


@pytest.mark.thorough
def test_closing_the_client_while_an_add_waits(bookies: Callable[..., list[BookieProcess]]) -> None:
    """A thread that waits for a hung bookie gets ClientClosed when the client is closed."""
    store, one = bookies(2)
    bk = BookKeeper(metadata_of([store]), useV2WireProtocol=True)
    bk.start()
    ledger = on(bk, one)
    warm(ledger, patience_s=PATIENCE_S)
    with ThreadPoolExecutor(1) as threads, frozen(one):
        adding = threads.submit(ledger.append, b"pending")
        wait_until(lambda: ledger._handle.writer.pending)
        bk.close()
        with pytest.raises(ClientClosed):
            adding.result(WAIT_S)


def test_an_interrupted_add(bookies: Callable[..., list[BookieProcess]], v2: bool) -> None:
    """An add that a signal interrupts is not forgotten: the event loop adds it, and the next one has the next id."""
    store, one = bookies(2)
    main = threading.main_thread().ident
    assert main is not None

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        with BookKeeper(metadata_of([store]), useV2WireProtocol=v2) as bk:
            with on(bk, one) as ledger:
                first = warm(ledger, patience_s=PATIENCE_S)
                with frozen(one), ThreadPoolExecutor(1) as threads:

                    def stop() -> None:
                        wait_until(lambda: ledger._handle.writer.pending)
                        signal.pthread_kill(main, signal.SIGUSR1)

                    stopping = threads.submit(stop)
                    with pytest.raises(KeyboardInterrupt):
                        ledger.append(payload(first))
                    stopping.result(WAIT_S)
                assert ledger.append(payload(first + 1)) == first + 1
            check(bk, ledger.id, first + 2)
    finally:
        signal.signal(signal.SIGUSR1, before)
