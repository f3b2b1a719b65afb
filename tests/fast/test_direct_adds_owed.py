"""Test module client.direct_adds where an ack quorum is enough: the responses of slower bookies are collected later."""

import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import FrameType

import pytest

from bookie._fast.client.direct_adds import DirectAdder
from bookie._fast.client.write_window import Add
from tests.fast.direct_peer import LONG_S
from tests.fast.direct_window import DIGEST, FAILURES, Direct, direct, hang_up


@pytest.mark.parametrize("v3", [False, True], ids=["V2", "V3"])
@pytest.mark.parametrize("slow", [0, 1, 2])
def test_an_entry_on_an_ack_quorum_is_acknowledged(slow: int, v3: bool) -> None:
    """L8: two of three bookies are enough, whichever they are; the response of the third is collected afterwards."""
    with direct(3, 2, v3=v3) as one:
        for peer in one.peers:
            if peer is not one.peers[slow]:
                one.answer(peer, 0)
        assert one.add(b"entry") == 0
        assert (one.window.lac, one.window.count, one.window.unsent) == (0, 0, 0)
        assert [link is None for link in one.links] == [k == slow for k in range(3)]
        assert one.adder.owing
        assert one.taken_over == 1  # so that the response is collected, whether another add follows or not
        assert one.adder.collect()
        assert (one.pools[slow].given, one.adder.doubted) == ([], 0)
        one.answer(one.peers[slow], 0)
        assert not one.adder.collect()
        assert one.pools[slow].given == [one.peers[slow].link]
        assert (one.peers[slow].link.usable, one.adder.doubted, one.taken_over) == (True, 0, 1)
        assert one.adder.doubtful_adds() == []
        for peer in one.peers:
            assert bytes(DIGEST.open(one.sent(peer), 7, 0).payload) == b"entry"


def test_responses_that_are_there_are_not_owed() -> None:
    """If all bookies have answered when the last one is looked at, nothing is left for later."""
    with direct(3, 2) as one:
        for entry in range(3):
            for peer in one.peers:
                one.answer(peer, entry)
            assert one.add() == entry
            assert None not in one.links
        assert (one.adder.owing, one.taken_over) == (False, 0)


def test_the_event_loop_is_told_once() -> None:
    """While the event loop comes back to collect, it is not woken for each add."""
    with direct(3, 2) as one:
        for entry in range(3):
            for peer in one.peers[:2]:
                one.answer(peer, entry)
            assert one.add() == entry
            one.answer(one.peers[2], entry)
            assert not one.adder.collect()
        assert one.taken_over == 1
        assert not one.adder.collect(rest=True)
        for peer in one.peers[:2]:
            one.answer(peer, 3)
        assert one.add() == 3
        assert one.taken_over == 2
        assert one.adder.collect(rest=True)


OWED: dict[str, Callable[[Direct], None]] = {
    "refused": lambda one: one.answer(one.peers[-1], 1, 104, number=1),
    "silent": lambda _: None,
    "lost": hang_up,
    "another entry": lambda one: one.answer(one.peers[-1], 2, number=9),
    "closed here": lambda one: one.peers[-1].link.close(),
}


@pytest.mark.parametrize("v3", [False, True], ids=["V2", "V3"])
@pytest.mark.parametrize("name", OWED)
def test_a_slow_bookie_that_does_not_store_it(name: str, v3: bool) -> None:
    """L8: an acknowledged entry stays so; the event loop gets the bookie's copy of it, to send it there again."""
    with direct(3, 2, v3=v3) as one:
        one.window.append(b"before")
        assert one.by_loop() == [0]
        for peer in one.peers[:2]:
            one.answer(peer, 1, number=1)
        timeout_s = 0.2 if name == "silent" else LONG_S
        assert one.add(b"entry", timeout_s) == 1
        OWED[name](one)
        if name == "refused":
            one.answer(one.peers[2], 1, 104, number=1)
        else:
            OWED[name](one)
        until_noticed(one)
        assert (one.adder.owing, one.adder.doubted, one.taken_over) == (False, 1, 2)
        ((entry, index, pool, record),) = one.adder.doubtful_adds()
        # Entry 1 begins at the second bookie of the ensemble, so the third connection is to the first one.
        assert (entry, index, pool) == (1, 0, one.pools[2])
        assert record[4:] == one.sent(one.peers[0])
        assert int.from_bytes(record[:4], "big") == len(record) - 4
        assert pool.given == [one.peers[2].link]
        assert pool.given[0].usable == (name == "refused")
        assert one.adder.doubtful_adds() == []
        assert (one.window.lac, one.window.count, one.window.unsent) == (1, 0, 0)


def until_noticed(one: Direct) -> None:
    """Collect until nothing is owed any more."""
    nothing = threading.Event()
    while one.adder.collect():
        nothing.wait(0.001)


@pytest.mark.parametrize("name", FAILURES)
def test_a_bookie_that_fails_before_the_ack_quorum(name: str) -> None:
    """L8: the event loop goes on, and no connection on which a response is due stays in use."""
    answer, outcome = FAILURES[name]
    with direct(3, 2, patience_s=0.2) as one:
        one.answer(one.peers[0], 0)
        answer(one)
        add = one.add(b"the same", 0.2)
        assert isinstance(add, Add)
        assert (add.done(), one.window.unsent, one.adder.owing) == (False, 1, False)
        assert one.peers[2].link.outcome == outcome
        assert not one.peers[1].link.usable
        assert one.by_loop() == [0]
        assert add.result() == 0


def test_while_a_response_is_owed_the_bookie_is_replaced() -> None:
    """L2: what the bookie answers then tells its place, whose bookie is another one by now."""
    with direct(3, 2) as one:
        for peer in one.peers[:2]:
            one.answer(peer, 0)
        assert one.add() == 0
        one.window.unack(2)
        one.answer(one.peers[2], 0, 104)
        until_noticed(one)
        assert [found[:3] for found in one.adder.doubtful_adds()] == [(0, 2, one.pools[2])]
        assert one.window.lac == 0


@pytest.mark.parametrize("elsewhere", [False, True], ids=["to this thread", "to another thread"])
@pytest.mark.parametrize("enough", [2, 3])
def test_an_interrupted_wait(enough: int, elsewhere: bool) -> None:
    """A signal whose handler raises while bookies are awaited leaves the entry to the event loop.

    The system may deliver it to another thread, or just before the wait begins, which it does not end then.
    """
    noticed = threading.Event()

    def handler(number: int, frame: FrameType | None) -> None:
        noticed.set()
        interrupt(number, frame)

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        with direct(3, enough) as one, ThreadPoolExecutor(1) as threads:
            main = threading.get_ident()

            def stop() -> bool:
                one.sent(one.peers[2])
                signal.pthread_kill(threading.get_ident() if elsewhere else main, signal.SIGUSR1)
                return noticed.wait(LONG_S / 3)  # the add would wait until its time is over

            stopping = threads.submit(stop)
            with pytest.raises(KeyboardInterrupt):
                one.add()
            assert stopping.result()
            assert (one.window.count, one.window.unsent, one.taken_over, one.adder.owing) == (1, 1, 1, False)
            assert not any(peer.link.usable for peer in one.peers)
            assert one.by_loop() == [0]
    finally:
        signal.signal(signal.SIGUSR1, before)


def interrupt(number: int, frame: FrameType | None) -> None:
    """Handle a signal as SIGINT is handled."""
    raise KeyboardInterrupt


def test_an_interruption_when_the_event_loop_is_told() -> None:
    """An entry that an ack quorum has stored is acknowledged, and its slow bookie is not forgotten."""
    with direct(3, 2) as one:
        calls: list[int] = []

        def take_over() -> None:
            calls.append(len(calls))
            if len(calls) == 1:
                raise KeyboardInterrupt

        one.adder = DirectAdder(one.window, DIGEST.master_key, take_over, [])
        for peer in one.peers[:2]:
            one.answer(peer, 0)
        with pytest.raises(KeyboardInterrupt):
            one.add()
        assert (calls, one.window.lac, one.links[2], one.adder.owing) == ([0, 1], 0, None, True)
        one.answer(one.peers[2], 0)
        until_noticed(one)
        assert one.peers[2].link.usable
