"""Direct adds of ledgers whose ack quorum is below the write quorum, while the other bookies are slow, fail or die."""

import threading
from collections.abc import Callable

import pytest

from bookie.client import BookKeeper
from bookie.client.blocking.writers import WriteHandle
from bookie.errors import ClientClosed
from tests.client.facade.direct_adds import (
    PATIENCE_S,
    SIZES,
    WAIT_S,
    check,
    created,
    frozen,
    nothing_owed,
    payload,
    wait_until,
    warm,
)
from tests.fixtures.bookies import BookieProcess, metadata_of


@pytest.fixture(params=[True, False], ids=["V2", "V3"])
def v2(request: pytest.FixtureRequest) -> bool:
    """Whether the client speaks V2."""
    return bool(request.param)


def of_ensemble(cluster: list[BookieProcess], ledger: WriteHandle) -> BookieProcess:
    """Return a bookie of the ledger's ensemble, but not the first one, in whose process the metadata are."""
    bookies = ledger._handle.writer.known.metadata.segments[-1].bookies
    return next(one for one in cluster[1:] if one.id in bookies)


def has_its_entries(bk: BookKeeper, ledger: int, bookie: str) -> bool:
    """Return whether a bookie has all entries of a closed ledger whose write set it belongs to."""
    metadata = bk.ledger_metadata(ledger)
    there = bk._thread.run(bk._aio.bookie_client.list_entries(bookie, ledger))
    count = metadata.last_entry + 1
    return all(entry in there for entry in range(count) if bookie in metadata.write_set(entry))


@pytest.mark.thorough
@pytest.mark.parametrize("sizes", [(3, 3, 2), (3, 2, 1)], ids=["quorum", "any"])
def test_a_frozen_bookie_beyond_the_ack_quorum(
    bookies: Callable[..., list[BookieProcess]], v2: bool, sizes: tuple[int, int, int]
) -> None:
    """L2: adds are acknowledged without a bookie that stands still, and it gets every entry when it goes on."""
    cluster = bookies(3)
    with BookKeeper(metadata_of(cluster), useV2WireProtocol=v2, addEntryTimeoutSec=60) as bk:
        with created(bk, sizes) as ledger:
            first = warm(ledger, patience_s=PATIENCE_S)
            adder = ledger._direct_adds._adder
            assert adder is not None
            slow = of_ensemble(cluster, ledger)
            with frozen(slow):
                for entry in range(first, first + 12):
                    assert ledger.append(payload(entry)) == entry == ledger.last_add_confirmed
                wait_until(lambda: adder.doubted)
            wait_until(lambda: not adder.owing)
            assert len(ledger._handle.writer.known.metadata.segments) == 1
            count = warm(ledger, first + 12)
        check(bk, ledger.id, count)
    with BookKeeper(metadata_of(cluster)) as bk:
        wait_until(lambda: has_its_entries(bk, ledger.id, slow.id))


def test_the_event_loop_collects_what_no_add_does(bookies: Callable[..., list[BookieProcess]]) -> None:
    """What is owed is collected without another add, also if an add has collected all before the event loop came."""
    cluster = bookies(3)
    with BookKeeper(metadata_of(cluster), useV2WireProtocol=True, addEntryTimeoutSec=60) as bk:
        with created(bk, SIZES["quorum"]) as ledger:
            first = warm(ledger, patience_s=WAIT_S)
            adder = ledger._direct_adds._adder
            assert adder is not None
            slow = of_ensemble(cluster, ledger)
            wait_until(lambda: not adder.watched)
            held, go_on = threading.Event(), threading.Event()

            async def hold() -> None:
                held.set()
                go_on.wait(WAIT_S)

            holding = bk._thread.submit(hold())
            assert held.wait(WAIT_S)
            with frozen(slow):
                assert ledger.append(payload(first)) == first
            nothing_owed(ledger)
            assert adder.watched
            go_on.set()
            holding.result(WAIT_S)
            for entry in (first + 1, first + 2):
                with frozen(slow):
                    assert ledger.append(payload(entry)) == entry
                wait_until(lambda: not adder.owing)
            assert adder.doubted == 0
        check(bk, ledger.id, first + 3)


def test_what_a_slow_bookie_owes_leaves_connections_to_others(bookies: Callable[..., list[BookieProcess]]) -> None:
    """However many entries are added while a third bookie stands still, other threads find connections to it."""
    cluster = bookies(3)
    with BookKeeper(metadata_of(cluster), useV2WireProtocol=True, addEntryTimeoutSec=60) as bk:
        with created(bk, SIZES["quorum"]) as one, created(bk, SIZES["quorum"]) as other:
            slow = of_ensemble(cluster, one)
            first = {ledger: warm(ledger, patience_s=WAIT_S) for ledger in (one, other)}
            pool = bk._aio.bookie_client._peers[slow.id].direct
            with frozen(slow):
                steps = 0
                while steps < 8 or pool.busy < 2:  # the second connection may take its time
                    for ledger in (one, other):
                        entry = first[ledger] + steps
                        assert ledger.append(payload(entry)) == entry == ledger.last_add_confirmed
                    steps += 1
                assert pool.busy == 2
                links = [pool.take(WAIT_S), pool.take(WAIT_S)]
                assert None not in links
                for link in links:
                    assert link is not None
                    pool.give(link)
            for ledger in (one, other):
                nothing_owed(ledger)
            assert pool.may_owe
            count = {ledger: warm(ledger, first[ledger] + steps) for ledger in (one, other)}
        for ledger in (one, other):
            check(bk, ledger.id, count[ledger])


@pytest.mark.thorough
def test_a_bookie_beyond_the_ack_quorum_dies(bookies: Callable[..., list[BookieProcess]], v2: bool) -> None:
    """L2, L6: a bookie that dies after the ack quorum has answered is replaced, though no add has failed."""
    cluster = bookies(4)
    with BookKeeper(metadata_of(cluster), useV2WireProtocol=v2) as bk:
        with created(bk, SIZES["quorum"]) as ledger:
            first = warm(ledger, patience_s=WAIT_S)
            adder = ledger._direct_adds._adder
            assert adder is not None
            slow = of_ensemble(cluster, ledger)
            slow.freeze()
            assert ledger.append(payload(first)) == first
            assert adder.owing
            slow.kill()
            wait_until(lambda: not adder.owing)  # nobody adds meanwhile: the event loop has noticed
            writer = ledger._handle.writer
            wait_until(lambda: writer._replacer.waiting)
            for entry in range(first + 1, first + 4):
                assert ledger.append(payload(entry)) == entry
            assert slow.id not in writer.known.metadata.segments[-1].bookies
            count = warm(ledger, first + 4)
        check(bk, ledger.id, count)


@pytest.mark.thorough
def test_a_full_bookie_beyond_the_ack_quorum(bookies: Callable[..., list[BookieProcess]], v2: bool) -> None:
    """A bookie that answers with an error after the ack quorum has answered, or before, is replaced."""
    cluster = bookies(4)
    with BookKeeper(metadata_of(cluster), useV2WireProtocol=v2) as bk:
        with created(bk, SIZES["quorum"]) as ledger:
            first = warm(ledger)
            full = of_ensemble(cluster, ledger)
            full.settings["forceReadOnlyBookie"] = "true"
            full.restart()
            entry = first
            while full.id in ledger._handle.writer.known.metadata.segments[-1].bookies:
                assert ledger.append(payload(entry)) == entry
                entry += 1
            count = warm(ledger, entry)
        check(bk, ledger.id, count)


def test_closing_while_a_response_is_owed(bookies: Callable[..., list[BookieProcess]]) -> None:
    """L3: the ledger is closed with all that is acknowledged; a bookie that stands still does not delay it."""
    cluster = bookies(3)
    with BookKeeper(metadata_of(cluster), useV2WireProtocol=True, addEntryTimeoutSec=60) as bk:
        ledger = created(bk, SIZES["quorum"])
        first = warm(ledger, patience_s=WAIT_S)
        adder = ledger._direct_adds._adder
        assert adder is not None
        with frozen(of_ensemble(cluster, ledger)):
            assert ledger.append(payload(first)) == first
            assert adder.owing
            ledger.close()
        wait_until(lambda: not adder.owing)
        check(bk, ledger.id, first + 1)


def test_closing_the_client_while_a_response_is_owed(bookies: Callable[..., list[BookieProcess]]) -> None:
    """Its connection is closed with the client, and what is acknowledged stays."""
    cluster = bookies(3)
    bk = BookKeeper(metadata_of(cluster), useV2WireProtocol=True, addEntryTimeoutSec=60)
    bk.start()
    ledger = created(bk, SIZES["quorum"])
    first = warm(ledger, patience_s=WAIT_S)
    slow = of_ensemble(cluster, ledger)
    pool = bk._aio.bookie_client._peers[slow.id].direct
    with frozen(slow):
        assert ledger.append(payload(first)) == first
        bk.close()
        assert not pool.busy
        with pytest.raises(ClientClosed):
            ledger.append(b"late")
    with BookKeeper(metadata_of(cluster)) as other:
        check(other, ledger.id, first + 1)
