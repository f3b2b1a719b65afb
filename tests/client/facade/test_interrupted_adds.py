"""Calls that wait, such as adds that wait for room, when a signal interrupts them or the client is closed."""

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import FrameType
from typing import Any

import numpy as np
import pytest

from bookie.client import BookKeeper
from bookie.client.blocking.writers import WriteHandle
from bookie.errors import ClientClosed
from tests.client.facade.direct_adds import WAIT_S, check, frozen, on, payload, wait_until
from tests.fixtures.bookies import BookieProcess, metadata_of

Bookies = Callable[..., list[BookieProcess]]
Adding = Callable[[WriteHandle], object]
ROOM = 2


def alone(ledger: WriteHandle) -> object:
    """Add one entry and wait."""
    return ledger.append(b"interrupted")


def without_waiting(ledger: WriteHandle) -> object:
    """Add one entry, and wait for room only."""
    return ledger.append_async(b"interrupted")


def many(ledger: WriteHandle) -> object:
    """Add entries from an array."""
    return ledger.append_all(bytes(3), np.arange(4, dtype=np.int64))


ADDING = pytest.mark.parametrize("adding", [alone, without_waiting, many])


@pytest.fixture
def interrupts() -> Iterator[None]:
    """Let SIGUSR1 raise KeyboardInterrupt, as Ctrl-C does."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGUSR1, interrupt)
    yield
    signal.signal(signal.SIGUSR1, before)


def full(ledger: WriteHandle) -> None:
    """Fill the window of pending adds."""
    for entry in range(ROOM):
        ledger.append_async(payload(entry))


@ADDING
@pytest.mark.usefixtures("interrupts")
def test_what_was_not_added_stays_out(bookies: Bookies, adding: Adding) -> None:
    """An add that waited for room when it was interrupted is not added once there is room."""
    store, one = bookies(2)
    main = threading.main_thread().ident
    assert main is not None
    with BookKeeper(metadata_of([store]), maxOutstandingAdds=ROOM) as bk, ThreadPoolExecutor(1) as threads:
        with on(bk, one) as ledger:
            with frozen(one):
                full(ledger)

                def stop() -> None:
                    wait_until(lambda: ledger._handle.writer._backpressure.waiting)
                    signal.pthread_kill(main, signal.SIGUSR1)

                stopping = threads.submit(stop)
                with pytest.raises(KeyboardInterrupt):
                    adding(ledger)
                stopping.result(WAIT_S)
            assert ledger.append(payload(ROOM)) == ROOM
        check(bk, ledger.id, ROOM + 1)


@ADDING
def test_a_signal_just_when_the_event_loop_was_told(
    bookies: Bookies, adding: Adding, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same when the handler raises before the call knows what it waits for."""
    store, one = bookies(2)
    real = asyncio.run_coroutine_threadsafe

    def interrupted(*given: Any) -> Any:
        real(*given)
        raise KeyboardInterrupt

    with BookKeeper(metadata_of([store]), maxOutstandingAdds=ROOM) as bk:
        with on(bk, one) as ledger:
            with frozen(one):
                full(ledger)
                with monkeypatch.context() as patch:
                    patch.setattr(asyncio, "run_coroutine_threadsafe", interrupted)
                    with pytest.raises(KeyboardInterrupt):
                        adding(ledger)
            assert ledger.append(payload(ROOM)) == ROOM
        check(bk, ledger.id, ROOM + 1)


def test_a_create_that_is_interrupted_so(bookies: Bookies, monkeypatch: pytest.MonkeyPatch) -> None:
    """A ledger for which nobody has a handle does not stay."""
    (one,) = bookies(1)
    real = asyncio.run_coroutine_threadsafe

    def interrupted(*given: Any) -> Any:
        real(*given).result(WAIT_S)  # it comes too late to stop it
        raise KeyboardInterrupt

    with BookKeeper(metadata_of([one])) as bk, monkeypatch.context() as patch:
        patch.setattr(asyncio, "run_coroutine_threadsafe", interrupted)
        with pytest.raises(KeyboardInterrupt):
            bk.create_ledger(ensemble_size=1, write_quorum_size=1, ack_quorum_size=1)
    with BookKeeper(metadata_of([one])) as bk:
        assert not list(bk.list_ledgers())


@ADDING
def test_a_client_that_is_closed_meanwhile(bookies: Bookies, adding: Adding) -> None:
    """The call ends with ClientClosed, and so do calls after it."""
    store, one = bookies(2)
    bk = BookKeeper(metadata_of([store]), maxOutstandingAdds=ROOM)
    bk.start()
    ledger = on(bk, one)
    with ThreadPoolExecutor(1) as threads, frozen(one):
        full(ledger)
        adding_now = threads.submit(adding, ledger)
        wait_until(lambda: ledger._handle.writer._backpressure.waiting)
        bk.close()
        with pytest.raises(ClientClosed):
            adding_now.result(WAIT_S)
        with pytest.raises(ClientClosed):
            adding(ledger)
