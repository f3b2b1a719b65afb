"""Test module client.write_window: any sequence of adds, responses and replaced bookies agrees with the model, and
waiting and limits work.
"""

import asyncio
import random
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bookie._fast.client.write_window import Add, WriteWindow
from bookie.client.entries.digest import Digest, DigestType
from tests.fixtures.draws import examples
from tests.reference import record
from tests.reference import write_window as model

DIGEST = Digest.of(DigestType.CRC32C, b"")
SIZES = st.integers(1, 6).flatmap(
    lambda e: st.integers(1, e).flatmap(lambda w: st.tuples(st.just(e), st.just(w), st.integers(1, w)))
)


class Ended(Exception):
    """The exception that the tests' windows raise for a failed add."""


def explain(entry: int, error: Exception) -> Exception:
    """Return the exception of one add."""
    return Ended(f"{entry}: {error}")


def window(sizes: tuple[int, int, int] = (3, 3, 2), **options: Any) -> WriteWindow:
    """Return a window of ledger 7."""
    return WriteWindow(DIGEST.digester, 7, sizes, explain, **options)


def ack(w: WriteWindow, index: int, *entries: int, code: int = 0) -> list[tuple[int, int, bool]]:
    """Give the window responses of the bookie at `index`."""
    codes = np.full(len(entries), code, dtype=np.int32)
    return w.answered(index, np.array(entries, dtype=np.int64), codes)


def stored(records: tuple[memoryview, Any, Any]) -> dict[int, bytes]:
    """Return entries by id, as a sender would read them."""
    view, offsets, entries = records
    assert offsets[0] == 0
    assert offsets[-1] == len(view)
    whole, clean = record.unpack(bytes(view))
    assert clean
    for k, entry in enumerate(whole):
        assert len(entry) + 4 == offsets[k + 1] - offsets[k]
    return dict(zip(entries.tolist(), whole, strict=True))


class Course:
    """A random sequence of events, in the window and in the model."""

    def __init__(self, sizes: tuple[int, int, int], first: int, seed: int, *, advanced: bool) -> None:
        self.chance = random.Random(seed)
        self.sizes = sizes
        self.advanced = advanced
        self.count_max = self.chance.choice([3, 40, 200])
        self.window_ = window(sizes, first=first, count_max=self.count_max, advanced=advanced)
        self.model = model.WriteWindow(7, sizes, first=first, count_max=self.count_max, advanced=advanced)
        self.sent: list[tuple[int, int]] = []
        self.adds: list[Add] = []

    def add(self) -> None:
        """Add some entries; with ids of the caller in any order, and some of them twice."""
        for _ in range(self.chance.randint(1, 30)):
            payload = self.chance.randbytes(self.chance.choice([0, 1, 30, 300, 5000]))
            entry = self.model.head + self.chance.randint(0, 40) if self.advanced else None
            try:
                expected = self.model.append(payload, entry)
            except KeyError:
                with pytest.raises(KeyError):
                    self.window_.append(payload, -1 if entry is None else entry)
                continue
            add = self.window_.append(payload, -1 if entry is None else entry)
            assert (None if add is None else add.entry) == expected
            self.adds += [add] if add else []

    def send(self) -> None:
        """Send everything that was added, each entry to its write set."""
        while self.window_.take(1.0, self.chance.choice([1, 1000, 1 << 20])):
            for index in range(self.sizes[0]):
                records = self.window_.batch(index)
                for entry, bytes_ in stored(records).items() if records else ():
                    assert bytes_ == self.model.pending[entry].stored
                    assert index in self.model.write_set(entry)
                    self.model.pending[entry].sent = True
                    self.sent.append((index, entry))
        assert all(entry.sent for entry in self.model.pending.values())

    def answer(self) -> None:
        """Answer in any order, with late and refused adds among them."""
        self.chance.shuffle(self.sent)
        for _ in range(self.chance.randint(0, len(self.sent))):
            index, entry = self.sent.pop()
            code = self.chance.choice([0, 0, 0, -104])
            expected = self.model.answered(index, entry, code)
            assert ack(self.window_, index, entry, code=code) == ([expected] if expected else [])
        assert self.window_.release() == self.model.release()

    def replace(self) -> None:
        """Replace the bookie at an index; the new one gets the entries that the old one has not acknowledged."""
        index = self.chance.randrange(self.sizes[0])
        self.window_.unack(index)
        self.model.unack(index)
        self.sent = [one for one in self.sent if one[0] != index]
        ids = self.window_.unacked(index)
        assert ids.tolist() == self.model.unacked(index)
        if len(ids):
            assert stored(self.window_.records(ids)) == {int(k): self.model.pending[int(k)].stored for k in ids}
            self.sent += [(index, int(entry)) for entry in ids]

    def hold(self) -> None:
        """Begin or end a change of the ensemble."""
        self.window_.holding = self.model.holding = not self.window_.holding
        assert self.window_.release() == self.model.release()

    def check(self) -> None:
        """Check that window and model agree."""
        assert self.window_.first_missing == self.model.first_missing
        assert self.window_.stuck == self.model.stuck
        assert (self.window_.head, self.window_.next, self.window_.lac) == (
            self.model.head,
            self.model.next,
            self.model.lac,
        )
        assert (self.window_.length, self.window_.head_length) == (self.model.length, self.model.head_length)
        assert self.window_.count == len(self.model.pending)
        assert self.window_.bytes == sum(len(entry.stored) + 4 for entry in self.model.pending.values())
        assert all(add.done() == (add.entry < self.model.head) for add in self.adds)


@settings(max_examples=examples(60))
@given(SIZES, st.integers(0, 2**62), st.integers(0, 2**32), st.booleans())
def test_any_course(sizes: tuple[int, int, int], first: int, seed: int, advanced: bool) -> None:
    """Ids, records, acknowledged entries and entries to send again are the model's, also with ids far above 2^31."""
    course = Course(sizes, first, seed, advanced=advanced)
    for _ in range(25):
        course.chance.choice([course.add, course.add, course.send, course.answer, course.replace, course.hold])()
        course.check()
    assert course.window_.fail(ValueError("over")) == sorted(course.model.pending)
    assert (course.window_.count, course.window_.bytes, course.window_.unsent) == (0, 0, 0)


def test_acked_in_order() -> None:
    """L8: an entry with its quorum waits for those before it, and for the end of an ensemble change (L6)."""
    w = window()
    first, second = w.append(b"a"), w.append(b"b")
    assert first
    assert second
    assert w.take(0.0) == 2
    ack(w, 0, 1)
    ack(w, 1, 1)
    assert w.release() == 0
    w.holding = True
    ack(w, 2, 0)
    ack(w, 1, 0)
    assert (w.release(), w.lac, first.done()) == (0, -1, False)
    w.holding = False
    assert (w.release(), w.lac, first.result(), second.result()) == (2, 1, 0, 1)


def test_replaced_bookie_has_acked_nothing() -> None:
    """L2: acknowledgements of a replaced bookie do not count, and its successor gets the entries again."""
    w = window((3, 3, 2))
    w.append(b"a")
    w.take(0.0)
    ack(w, 0, 0)
    ack(w, 1, 0)
    w.unack(1)
    assert w.release() == 0
    assert w.unacked(1).tolist() == [0]
    ack(w, 1, 0)
    assert w.release() == 1


def test_deferred_lac_follows_only_when_told() -> None:
    """Entries that are acknowledged but not synced do not raise the LAC."""
    w = window(deferred=True)
    w.append(b"a")
    w.take(0.0)
    ack(w, 0, 0)
    ack(w, 1, 0)
    assert (w.release(), w.lac) == (1, -1)
    with pytest.raises(ValueError, match="LAC 1 is above the last acknowledged entry 0"):
        w.raise_lac(1)
    w.raise_lac(0)
    assert w.lac == 0


def test_judged_entries() -> None:
    """If the owner decides on quorums, an entry is complete when the owner says so."""
    w = window((4, 3, 2), judged=True)
    w.append(b"a")
    w.take(0.0)
    ack(w, 0, 0)
    assert w.quorate() == []
    ack(w, 2, 0)
    assert w.quorate() == [(0, (0, 2))]
    assert w.release() == 0
    w.complete(0)
    assert (w.release(), w.quorate()) == (1, [])


def test_failures_by_index() -> None:
    """An owner that delays ensemble changes can ask which bookies have failed an entry."""
    w = window((5, 3, 2), first=4)
    w.append(b"a")
    assert w.fail_index(4, 4) == (4,)
    assert w.fail_index(4, 1) == (1, 4)
    assert w.fail_index(4, 3) == (1, 4)  # bookie 3 is not in its write set
    assert w.fail_index(5, 0) == ()


def test_overdue() -> None:
    """The lowest incomplete entry that was sent before a given time is overdue."""
    w = window()
    for _ in range(3):
        w.append(b"x")
    assert w.overdue(9.0) == -1
    assert w.take(1.0) == 3
    ack(w, 0, 0)
    ack(w, 1, 0)
    assert (w.overdue(1.0), w.overdue(1.5)) == (-1, 1)


def test_limits() -> None:
    """Number and bytes are limited, and an entry that is too large for a frame is refused and leaves nothing."""
    w = window(count_max=2, bytes_max=1000, record_bytes_max=600)
    with pytest.raises(ValueError, match=r"needs 640 bytes with its header; the limit is 600: .*nettyMaxFrameSize"):
        w.append(bytes(600))
    assert (w.next, w.length, w.count) == (0, 0, 0)
    assert w.append(bytes(500))
    assert w.append(bytes(500)) is None
    assert w.append(b"")
    assert w.append(b"") is None
    assert (w.count, w.unsent) == (2, 2)


def test_ids_that_share_a_place() -> None:
    """An entry whose slot follows an acknowledged entry's in the table is still found, whatever its own slot is."""
    w = window((1, 1, 1), advanced=True)
    ids = [0, 64, 1, 128, 2, 65, 3]
    for entry in ids:
        assert w.append(b"%d" % entry, entry)
    while w.take(0.0):
        pass
    for gone in range(4):
        ack(w, 0, gone)
        assert w.release() == 1
        left = sorted(entry for entry in ids if entry > gone)
        assert w.unacked(0).tolist() == left
        assert [stored(w.records(np.array([one]))).keys() for one in left] == [{one} for one in left]
        for one in left:
            with pytest.raises(KeyError):
                w.append(b"again", one)


def test_missing_id_is_let_in() -> None:
    """With ids of the caller, the id that all others wait for is accepted by a full window, or none could complete."""
    w = window((1, 1, 1), count_max=2, advanced=True)
    assert w.append(b"", 2)
    assert w.append(b"", 1)
    assert w.append(b"", 3) is None
    assert w.append(b"", 0)
    assert w.take(0.0) == 3
    ack(w, 0, 0, 1, 2)
    assert (w.release(), w.lac) == (3, 2)


@pytest.mark.parametrize(
    ("sizes", "entry", "text"),
    [((3, 3, 2), 5, "pass none here"), ((2, 3, 1), -1, "ensemble >= write"), ((99, 65, 1), -1, "at most 64")],
)
def test_bad_arguments(sizes: tuple[int, int, int], entry: int, text: str) -> None:
    """The error names the invalid argument."""
    with pytest.raises(ValueError, match=text):
        window(sizes).append(b"", entry)


def test_large_payloads_from_threads() -> None:
    """Payloads digested without the GIL by several threads make whole records, and ids have no gaps."""
    w = window((1, 1, 1), bytes_max=64 << 20)

    def adds(mark: int) -> None:
        for _ in range(20):
            assert w.append(bytes([mark]) * (64 << 10))

    threads = [threading.Thread(target=adds, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seen = {}
    while w.take(0.0):
        records = w.batch(0)
        assert records
        seen.update(stored(records))
    assert sorted(seen) == list(range(80))
    for entry, bytes_ in seen.items():
        assert len(set(DIGEST.open(bytes_, 7, entry).payload.tobytes())) == 1


def test_awaiting_and_waiting() -> None:
    """An add can be awaited, and waited for by threads; an unfinished one can be awaited again after a cancellation."""

    async def scenario() -> None:
        w = window((1, 1, 1))
        adds = [w.append(b"x") for _ in range(3)]
        assert all(adds)
        ends: list[bool] = []
        thread = threading.Thread(target=lambda: ends.append(adds[1].wait(60)))  # type: ignore[union-attr]
        thread.start()
        waiting = asyncio.gather(*adds[:2])  # type: ignore[arg-type]
        given_up = asyncio.ensure_future(adds[2])  # type: ignore[arg-type]
        await asyncio.sleep(0)
        given_up.cancel()
        w.take(0.0)
        ack(w, 0, 0, 1)
        w.release()
        assert await waiting == [0, 1]
        await asyncio.to_thread(thread.join)
        assert ends == [True]
        with pytest.raises(RuntimeError, match="entry 2: not acknowledged yet"):
            adds[2].result()  # type: ignore[union-attr]
        assert adds[2].wait(0.001) is False  # type: ignore[union-attr]
        again = asyncio.ensure_future(adds[2])  # type: ignore[arg-type]
        await asyncio.sleep(0)
        assert w.fail(ValueError("gone")) == [2]
        with pytest.raises(Ended, match="2: gone"):
            await again
        with pytest.raises(Ended, match="3: gone"):
            w.append(b"x")
        assert await adds[0] == 0  # type: ignore[misc]

    asyncio.run(scenario())


@given(
    st.lists(st.binary(max_size=60), max_size=30),
    st.integers(1, 12),
    st.integers(100, 900),
    st.booleans(),
)
def test_many_at_once_are_as_one_by_one(payloads: list[bytes], count_max: int, bytes_max: int, ends: bool) -> None:
    """`append_many` with a buffer and offsets has the effect of `append` for each, and stops at the same entry."""
    offsets = np.cumsum([3, *map(len, payloads)], dtype=np.int64)
    buffer = b"..." + b"".join(payloads)
    many, single = (window(count_max=count_max, bytes_max=bytes_max) for _ in range(2))
    first = 0
    while first < len(payloads):
        taken = many.append_many(buffer, offsets, first)
        expected = 0
        while first + expected < len(payloads) and single.append(payloads[first + expected]) is not None:
            expected += 1
        assert taken == expected
        assert (many.next, many.length, many.count, many.bytes) == (
            single.next,
            single.length,
            single.count,
            single.bytes,
        )
        first += taken
        for w in (many, single):
            w.take(0.0)
        if many.unsent == 0 and taken:
            assert stored(many.batch(0)) == stored(single.batch(0))  # type: ignore[arg-type]  # something was taken
        ids = list(range(many.head, many.next if ends else many.head + 1))
        for w in (many, single):
            ack(w, 0, *ids)
            ack(w, 1, *ids)
            w.release()


def test_many_are_checked() -> None:
    """Invalid offsets, an entry that is too large, a window with ids of the caller, and a failed window are refused."""
    w = window(record_bytes_max=200)
    for offsets in ([0, 5], [2, 1], [-1, 2]):
        with pytest.raises(ValueError, match="do not fit 4 bytes"):
            w.append_many(b"four", np.array(offsets, dtype=np.int64))
    with pytest.raises(ValueError, match="the limit is 200"):
        w.append_many(b"x" * 400, np.array([0, 10, 400], dtype=np.int64))
    assert w.next == 1
    with pytest.raises(ValueError, match="first -1"):
        w.append_many(b"", np.array([0], dtype=np.int64), -1)
    with pytest.raises(ValueError, match="pass one >= 0"):
        window(advanced=True).append_many(b"x", np.array([0, 1], dtype=np.int64))
    w.fail(RuntimeError("over"))
    with pytest.raises(Ended, match="over"):
        w.append_many(b"", np.array([0], dtype=np.int64))
