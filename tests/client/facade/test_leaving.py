"""What leaving or closing a write handle does with entries that are not in the ledger yet, in both clients."""

import asyncio

import pytest

from bookie.client import BookKeeper, aio
from bookie.client.ledgers import adds
from bookie.errors import BookKeeperError, IllegalOperation, LedgerClosed, RequestTimeout, TooManyRequests
from tests.fixtures.bookies import BookieProcess
from tests.fixtures.frozen import freeze, thaw

PAYLOADS = [b"entry %d" % k for k in range(20)]


@pytest.fixture
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls do not wait for a missing id."""
    monkeypatch.setattr(adds, "GAP_WAIT_S", 0.0)


def contents(bk: BookKeeper, ledger: int) -> list[bytes]:
    """Return the payloads of a closed ledger."""
    with bk.open_ledger(ledger) as reader:
        assert reader.is_closed
        return [bytes(entry.data) for batch in reader.batches() for entry in batch]


# --- deferred sync ----------------------------------------------------------------------------------------------------


def test_leaving_forces(uri: str) -> None:
    """The `with` block of a writer with deferred sync keeps all its entries."""
    with BookKeeper(uri) as bk:
        with bk.create_ledger(deferred_sync=True) as ledger:
            for payload in PAYLOADS:
                ledger.append_async(payload)
        assert contents(bk, ledger.id) == PAYLOADS
        with bk.create_ledger_advanced(deferred_sync=True) as advanced:
            for k in reversed(range(20)):
                advanced.append_async(k, PAYLOADS[k])
        assert contents(bk, advanced.id) == PAYLOADS


def test_closing_forces_what_is_acknowledged(uri: str) -> None:
    """A close without a flush keeps what was acknowledged, and so does a block that is left by an exception."""
    with BookKeeper(uri) as bk:
        ledger = bk.create_ledger(deferred_sync=True)
        for payload in PAYLOADS:
            ledger.append(payload)
        ledger.close()
        assert contents(bk, ledger.id) == PAYLOADS
        ledger = bk.create_ledger(deferred_sync=True)
        for payload in PAYLOADS:
            ledger.append(payload)
        with pytest.raises(ValueError, match="mine"), ledger:
            raise ValueError("mine")
        assert contents(bk, ledger.id) == PAYLOADS


def test_leaving_forces_on_asyncio(uri: str) -> None:
    """Leaving and closing force in the client for asyncio, too; closing twice at once is one close."""

    async def scenario() -> list[int]:
        async with aio.BookKeeper(uri) as bk:
            async with bk.create_ledger(deferred_sync=True) as left:
                for payload in PAYLOADS:
                    left.append_async(payload)
            closed = await bk.create_ledger(deferred_sync=True)
            for payload in PAYLOADS:
                await closed.append(payload)
            await asyncio.gather(closed.close(), closed.close())
            with pytest.raises(LedgerClosed):
                await closed.append(b"late")
            return [left.id, closed.id]

    ledgers = asyncio.run(scenario())
    with BookKeeper(uri) as bk:
        for ledger in ledgers:
            assert contents(bk, ledger) == PAYLOADS


@pytest.mark.parametrize("how", ["with", "close"])
@pytest.mark.parametrize("trouble", ["hangs", "is killed"])
@pytest.mark.thorough
def test_a_force_that_fails_when_leaving(cluster: list[BookieProcess], uri: str, how: str, trouble: str) -> None:
    """A bookie does not sync: the error says which entries are lost, and the ledger ends after the last forced one."""
    bookie = cluster[2]
    with BookKeeper(uri, readEntryTimeoutSec=2, addEntryTimeoutSec=60) as bk:
        ledger = bk.create_ledger(ensemble_size=3, write_quorum_size=3, ack_quorum_size=2, deferred_sync=True)
        for payload in PAYLOADS[:5]:
            ledger.append(payload)
        ledger.force()
        for payload in PAYLOADS[5:]:
            ledger.append(payload)
        hangs = trouble == "hangs"
        freeze(bookie.pid) if hangs else bookie.kill()
        try:
            with pytest.raises(RequestTimeout if hangs else BookKeeperError) as caught:
                ledger.close() if how == "close" else ledger.__exit__(None, None, None)
        finally:
            thaw(bookie.pid) if hangs else bookie.start()
        assert f"ledger {ledger.id}: entries 5 to 19 were acknowledged, but could not be" in str(caught.value)
        assert "closed after entry 4" in str(caught.value)
        assert ledger.is_closed
        assert contents(bk, ledger.id) == PAYLOADS[:5]
        ledger.close()


# --- missing ids ------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("_impatient")
def test_a_full_window_behind_a_missing_id(uri: str) -> None:
    """An add for which there can be no room names the id that is missing; once that is added, all go on."""
    with BookKeeper(uri, maxOutstandingAdds=2) as bk, bk.create_ledger_advanced() as ledger:
        pending = [ledger.append_async(k, PAYLOADS[k]) for k in (1, 2)]
        with pytest.raises(TooManyRequests, match=rf"ledger {ledger.id}: entry 0 was not added, and 2 entries above"):
            ledger.append_async(3, PAYLOADS[3])
        pending += [ledger.append_async(k, PAYLOADS[k]) for k in (0, 3)]
        assert [one.result() for one in pending] == [1, 2, 0, 3]


@pytest.mark.usefixtures("_impatient")
@pytest.mark.parametrize("flushed", [True, False])
def test_leaving_with_a_missing_id(uri: str, flushed: bool) -> None:
    """Flushing and leaving raise an error that names the id, and the ledger ends before it."""
    with BookKeeper(uri) as bk:
        ledger = bk.create_ledger_advanced()
        late = [ledger.append_async(k, PAYLOADS[k]) for k in (0, 4, 1, 3)][3]
        if flushed:
            with pytest.raises(IllegalOperation, match="entry 2 was not added, and 2 entries above it"):
                ledger.flush()
        with pytest.raises(IllegalOperation, match="entry 2 was not added, and 2 entries above it"), ledger:
            pass
        with pytest.raises(LedgerClosed):
            late.result()
        assert contents(bk, ledger.id) == PAYLOADS[:2]


def test_leaving_with_a_missing_id_does_not_wait(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A block that is left adds nothing more, so leaving it waits for no missing id, also on asyncio."""
    monkeypatch.setattr(adds, "GAP_WAIT_S", 1e9)

    async def scenario() -> int:
        async with aio.BookKeeper(uri) as bk:
            ledger = await bk.create_ledger_advanced()
            with pytest.raises(IllegalOperation, match="entry 0 was not added"):
                async with ledger:
                    ledger.append_async(1, b"")
            return ledger.last_add_confirmed

    assert asyncio.run(scenario()) == -1


@pytest.mark.thorough
def test_callers_that_wait_for_room_in_any_order_of_their_ids(uri: str) -> None:
    """A small window, and a task for each id: each goes on when its id is the next, whatever else waits."""

    async def scenario() -> list[int]:
        async with aio.BookKeeper(uri, maxOutstandingAdds=2) as bk, bk.create_ledger_advanced() as ledger:
            ids = [7, 3, 12, 1, 15, 5, 14, 0, 9, 2, 11, 4, 13, 6, 10, 8]
            return await asyncio.gather(*(ledger.append(k, PAYLOADS[k]) for k in ids))

    assert sorted(asyncio.run(scenario())) == list(range(16))
