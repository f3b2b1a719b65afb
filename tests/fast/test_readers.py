"""Test which readers are taken to go forward (cache.readers)."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookie._fast.cache.readers import KnownReaders

RECORD = 100
KNOWN = 32


def read(readers: KnownReaders, entry: int, *, ledger: int = 7, count: int = 1, brings: int | None = None) -> int:
    """Let a miss read `brings` entries, or as many as were requested. Return the stretch of its reader."""
    stretch, _ = readers.advance(ledger, entry, requested=count, offset=entry * RECORD)
    last = entry + (count if brings is None else brings) - 1
    readers.brought(ledger, entry, last, (last + 1) * RECORD)
    return stretch


@given(start=st.integers(1, 1 << 40), step=st.integers(1, 17), count=st.sampled_from([1, 10, 100]))
def test_two_short_steps_make_a_reader(start: int, step: int, count: int) -> None:
    """The third read by equal steps is known to go forward; a step is short up to sixteen requests."""
    readers = KnownReaders()
    stride = min(step * count, count + 1000)
    assert [read(readers, start + at * stride, count=count) for at in range(3)] == [0, 0, min(stride, 1000)]


@pytest.mark.parametrize("entry", [0, 3])
def test_who_begins_a_ledger_goes_forward(entry: int) -> None:
    """After a read of entry 0 the first step is enough; after another one it is not."""
    readers = KnownReaders()
    read(readers, entry, brings=50)
    assert bool(read(readers, entry + 52)) == (entry == 0)


def test_steps_may_go_over_to_another_log() -> None:
    """A ledger that goes on in another entry log has no distance in bytes; within one log the distance is limited."""
    for log_id, forward in ((1, True), (0, False)):
        readers = KnownReaders()
        for entry in (10, 13):
            readers.advance(7, entry, offset=entry * RECORD)
            readers.brought(7, entry, entry, (entry + 1) * RECORD)
        assert readers.advance(7, 16, log_id=log_id, offset=1 << 30) == ((3, 14) if forward else (0, -1))


def test_going_back_begins_anew() -> None:
    """A reader whose stretch has left the cache before it was used goes forward again only after two more steps."""
    readers = KnownReaders()
    for entry in (10, 13):
        read(readers, entry)
    assert read(readers, 16, brings=12)
    assert [read(readers, entry) for entry in (19, 22, 25)] == [0, 0, 3]


def test_readers_of_one_ledger_do_not_mix() -> None:
    """As many readers as a shard knows advance in turn, at positions of their own in one ledger."""
    readers = KnownReaders()
    positions = [1 + 1000 * reader for reader in range(KNOWN)]
    for turn in range(4):
        assert [read(readers, at + 3 * turn) for at in positions] == [3 * (turn >= 2)] * KNOWN


def test_random_reads_are_no_readers() -> None:
    """Of ten thousand random reads in a ledger of a hundred thousand entries, hardly any seems to go forward."""
    readers = KnownReaders()
    rng = random.Random(7)
    assert sum(read(readers, rng.randrange(1, 100_000)) > 0 for _ in range(10_000)) < 10
