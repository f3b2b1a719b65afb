"""Test module client.direct_adds: what becomes of a claimed entry, whatever bookies answer and others do meanwhile, and
that ids, LAC and length are the model's in any course.
"""

import random
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bookie._fast.client.direct_adds import DirectAdder
from bookie._fast.client.write_window import Add, WriteWindow
from tests.fast.direct_peer import LONG_S
from tests.fast.direct_window import DIGEST, FAILURES, Direct, Ended, Pool, direct
from tests.fixtures.draws import examples


def every(one: Direct) -> int:
    """Return the places of all bookies, as bits."""
    return (1 << len(one.peers)) - 1


@pytest.mark.parametrize("v3", [False, True], ids=["V2", "V3"])
@pytest.mark.parametrize("copies", [1, 3])
def test_an_entry_on_all_bookies_is_acknowledged(copies: int, v3: bool) -> None:
    """L8: every bookie gets the same sealed entry with the LAC; then it is acknowledged without the event loop."""
    with direct(copies, v3=v3) as one:
        length = 0
        for entry, payload in enumerate([b"first", b"", b"x" * 70_000]):
            for peer in one.peers:
                one.answer(peer, entry)
            with ThreadPoolExecutor(copies) as threads:
                found = threads.map(one.sent, one.peers)
                assert one.add(payload) == entry
                opened = [DIGEST.open(stored, 7, entry) for stored in found]
            length += len(payload)
            assert [(bytes(e.payload), e.lac, e.length) for e in opened] == [(payload, entry - 1, length)] * copies
            assert (one.window.lac, one.window.head_length, one.window.count) == (entry, length, 0)
        assert (one.taken_over, one.window.unsent) == (0, 0)
        assert all(peer.link.usable for peer in one.peers)


@pytest.mark.parametrize("v3", [False, True], ids=["V2", "V3"])
@pytest.mark.parametrize("name", FAILURES)
def test_the_event_loop_goes_on(name: str, v3: bool) -> None:
    """L8: if one of the bookies fails, the event loop sends the same entry again, before all later ones."""
    answer, outcome = FAILURES[name]
    with direct(2, v3=v3, patience_s=0.05) as one:
        one.answer(one.peers[0], 0)
        answer(one)
        add = one.add(b"the same")
        assert isinstance(add, Add)
        assert (add.entry, add.done(), one.taken_over, one.window.unsent) == (0, False, 1, 1)
        assert one.peers[-1].link.outcome == outcome
        stored = one.sent(one.peers[0])
        one.window.append(b"later")
        assert one.window.take(1.0, 1) == 1
        records = one.window.batch(0)
        assert records is not None
        assert bytes(records[0])[4:] == stored
        one.window.answered(0, records[2], np.zeros(1, np.int32))
        one.window.answered(1, records[2], np.zeros(1, np.int32))
        assert (one.window.release(), add.result()) == (1, 0)
        assert one.by_loop() == [1]


def test_what_is_not_begun() -> None:
    """Nothing is added while another add is pending or waits, or the ensemble is or was changed; or too large."""
    with direct() as one:
        window, adder = one.window, one.adder
        assert adder.claim(bytes((256 << 10) + 1), 0, 0, 0.0) is None
        assert adder.claim("text", 0, 0, 0.0) is None  # type: ignore[arg-type]
        assert adder.claim(b"", 1, 0, 0.0) is None
        assert adder.claim(b"", 0, 1, 0.0) is None
        window.holding = True
        assert adder.claim(b"", 0, 0, 0.0) is None
        window.holding = False
        one.waiting.append("caller")
        assert adder.claim(b"", 0, 0, 0.0) is None
        one.waiting.clear()
        window.append(b"pending")
        assert adder.claim(b"", 1, 0, 0.0) is None
        assert one.by_loop() == [0]
        one.peers[0].link.close()
        assert one.add() is None
        window.fail(ValueError("over"))
        assert one.add() is None
        assert (window.next, one.taken_over) == (1, 0)


def test_a_connection_that_is_too_young() -> None:
    """ST5: a connection that was made after the ledger was known to be open is not used."""
    with direct() as one:
        link = one.peers[0].link
        for since_s in (0.0, link.born_s):
            assert one.adder.add(b"", 0, 0, 0.0, [link], [Pool()], since_s, LONG_S) is None
        assert (one.window.next, link.usable) == (0, True)


def test_other_ledgers_have_none() -> None:
    """Ledgers whose entries need more than an ack quorum of the write set have no direct adds."""
    for options, sizes in (
        ({"advanced": True}, (1, 1, 1)),
        ({"deferred": True}, (1, 1, 1)),
        ({"judged": True}, (3, 3, 2)),
    ):
        window = WriteWindow(DIGEST.digester, 7, sizes, lambda _, error: error, **options)
        with pytest.raises(ValueError, match="ordinary ledgers"):
            DirectAdder(window, DIGEST.master_key, lambda: None, [])


def claimed(one: Direct) -> Add:
    """Claim the next entry."""
    add = one.adder.claim(b"claimed", one.window.next, one.window.changes, 0.0)
    assert add is not None
    return add


def test_while_an_entry_is_claimed() -> None:
    """L8, L6: a claimed entry is not sent by the event loop; with others behind it, or somebody who awaits it, or an
    ensemble change, the event loop acknowledges it.
    """
    with direct(2) as one:
        add = claimed(one)
        assert (one.window.take(0.0), one.window.unacked(0).tolist()) == (0, [0])
        one.window.append(b"later")
        assert not one.adder.settle(every(one))
        assert (one.taken_over, add.done(), one.by_loop(), add.result()) == (1, False, [1], 0)

        class Waits:
            def done(self) -> bool:
                return False

            def set_result(self, _: None) -> None:
                told.append(threading.get_ident())

        told: list[int] = []
        add = claimed(one)
        add.tell(Waits())
        assert not one.adder.settle(every(one))
        assert (one.taken_over, told) == (2, [])
        assert (one.window.release(), len(told)) == (1, 1)

        add = claimed(one)
        one.window.holding = True
        assert not one.adder.settle(every(one))
        assert (one.window.release(), one.taken_over, add.done()) == (0, 3, False)
        one.window.unack(1)
        one.window.holding = False
        assert (one.window.release(), one.window.unacked(1).tolist()) == (0, [3])

        assert one.adder.settle(every(one)) is False


def test_a_bookie_that_was_replaced_meanwhile() -> None:
    """L2: an entry whose bookies are not those of the ensemble any more is sent again to all."""
    with direct(2) as one:
        add = claimed(one)
        one.window.unack(1)
        assert not one.adder.settle(every(one))
        assert (add.done(), one.window.release(), one.by_loop(), add.result()) == (False, 0, [0], 0)


def test_a_ledger_that_failed_meanwhile() -> None:
    """L3: an entry that all bookies have stored after the ledger's end is not acknowledged."""
    with direct() as one:
        add = claimed(one)
        assert one.window.fail(ValueError("closed")) == [0]
        assert not one.adder.settle(every(one))
        assert (one.window.lac, one.window.count, one.taken_over) == (-1, 0, 0)
        with pytest.raises(Ended, match="0: closed"):
            add.result()


def test_callers_that_wait_for_room_are_told() -> None:
    """A caller that came while the window was full is told when a direct add has made room."""
    with direct(count_max=1) as one:
        claimed(one)
        assert one.window.append(b"no room") is None
        one.waiting.append("caller")
        assert one.adder.settle(every(one))
        assert one.taken_over == 1


def test_an_interrupted_hand_over() -> None:
    """The event loop is told although a signal's handler raises in the call that tells it."""
    calls: list[int] = []

    def take_over() -> None:
        calls.append(len(calls))
        if len(calls) == 1:
            raise KeyboardInterrupt

    window = WriteWindow(DIGEST.digester, 7, (1, 1, 1), lambda _, error: error)
    adder = DirectAdder(window, DIGEST.master_key, take_over, [])
    assert adder.claim(b"x", 0, 0, 0.0)
    with pytest.raises(KeyboardInterrupt):
        adder.settle(0)
    assert (calls, window.unsent, window.take(0.0)) == ([0, 1], 1, 1)


class Course:
    """A random sequence of events."""

    def __init__(self, one: Direct, seed: int) -> None:
        self.chance = random.Random(seed)
        self.one = one
        self.window = one.window
        self.adds: list[Add] = []
        self.lengths = [0]
        self.claimed = False

    def payload(self) -> bytes:
        """Return the payload of the next entry."""
        data = self.chance.randbytes(self.chance.choice([0, 1, 300]))
        self.lengths.append(self.lengths[-1] + len(data))
        return data

    def claim(self) -> None:
        """Claim an entry if there may be a claim."""
        if not self.window.count and not self.window.holding:
            add = self.one.adder.claim(self.payload(), self.window.next, self.window.changes, 0.0)
            assert add is not None
            self.adds.append(add)
            self.claimed = True

    def append(self) -> None:
        """Add an entry by the event loop."""
        add = self.window.append(self.payload())
        assert add is not None
        self.adds.append(add)

    def settle(self) -> None:
        """End a claim."""
        before = self.window.head
        if self.one.adder.settle(every(self.one) if self.chance.random() < 0.6 else 0):
            assert self.claimed
            assert (self.window.head, self.window.count) == (before + 1, 0)
        self.claimed = False

    def by_loop(self) -> None:
        """Have bookies store what the event loop sends."""
        if not self.window.holding:
            self.one.by_loop()

    def hold(self) -> None:
        """Begin or end an ensemble change."""
        self.window.holding = not self.window.holding

    def replace(self) -> None:
        """Replace a bookie."""
        self.window.unack(self.chance.randrange(len(self.one.peers)))

    def end(self) -> None:
        """Have all bookies store everything."""
        self.window.holding = False
        self.settle()
        self.one.by_loop()
        for index in range(len(self.one.peers)):
            ids = self.window.unacked(index)
            self.window.answered(index, ids, np.zeros(len(ids), np.int32))
        self.window.release()

    def check(self) -> None:
        """Check what is acknowledged."""
        window = self.window
        assert [add.done() for add in self.adds] == [add.entry < window.head for add in self.adds]
        assert (window.lac, window.head_length) == (window.head - 1, self.lengths[window.head])


@settings(max_examples=examples(60))
@given(st.integers(1, 3), st.integers(0, 2**32))
def test_any_course(copies: int, seed: int) -> None:
    """L8: entries are acknowledged in order, none is lost, and LAC and length follow, in any order of claims, other
    adds, ends of claims, and ensemble changes.
    """
    with direct(copies) as one:
        course = Course(one, seed)
        steps = [course.claim, course.claim, course.settle, course.append, course.by_loop, course.hold, course.replace]
        for _ in range(60):
            course.chance.choice(steps)()
            course.check()
        course.end()
        assert [add.result() for add in course.adds] == list(range(len(course.adds)))
        assert (one.window.count, one.window.length) == (0, course.lengths[-1])
