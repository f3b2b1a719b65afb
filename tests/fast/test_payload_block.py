"""Test that a block has the columns of all entries that were copied into it, and nothing else."""

import itertools
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookie._fast.client.payload_block import PayloadBlock
from bookie._fast.wire import record
from tests.reference import record as model

OVERHEAD = 4 + 36

Row = tuple[int, int, bytes]
"""LAC, length and payload of an entry."""

Columns = tuple[list[int], list[int], list[int], list[bytes]]


def run_of(first: int, rows: list[Row]) -> tuple[memoryview, np.ndarray]:
    """Return entries as a bookie stores them, and their offsets."""
    stored = [
        struct.pack(">qqqq", 7, entry, lac, length) + bytes(4) + body
        for entry, (lac, length, body) in enumerate(rows, first)
    ]
    run = memoryview(model.pack(stored))
    return run, record.offsets(run)


def taken(block: PayloadBlock) -> tuple[list[int], list[int], list[int], list[int], list[bytes]]:
    """Empty a block; return its ids, LACs, lengths, sizes and payloads."""
    ids, lacs, lengths, sizes, edges, values = block.take()
    assert edges is not None
    assert values is not None
    places = np.frombuffer(edges, dtype=np.int32)
    assert places[-1] == len(values)
    return (
        np.frombuffer(ids, dtype=np.int64).tolist(),
        np.frombuffer(lacs, dtype=np.int64).tolist(),
        np.frombuffer(lengths, dtype=np.int64).tolist(),
        np.frombuffer(sizes, dtype=np.int32).tolist(),
        [bytes(values[a:b]) for a, b in itertools.pairwise(places)],
    )


ROWS = st.lists(st.tuples(st.integers(-1, 2**62), st.integers(0, 2**62), st.binary(max_size=9)), min_size=1, max_size=6)


@given(st.lists(st.tuples(ROWS, st.booleans()), min_size=1, max_size=8), st.integers(0, 40), st.integers(1, 12))
def test_blocks_hold_what_the_model_holds(runs: list[tuple[list[Row], bool]], bytes_max: int, rows_max: int) -> None:
    """Entries are appended while they follow the last one and have room; else the block is full, and unchanged."""
    block = PayloadBlock(bytes_max, rows_max)
    entry = 5
    held: list[tuple[int, Row]] = []
    for rows, gap in runs:
        entry += gap
        run, offsets = run_of(entry, rows)
        nbytes = sum(len(body) for _, _, body in rows)
        fits = (
            held[-1][0] + 1 == entry
            and len(held) + len(rows) <= rows_max
            and sum(len(body) for _, (_, _, body) in held) + nbytes <= bytes_max
            if held
            else True
        )
        assert block.add(entry, run, offsets, OVERHEAD) is fits
        if not fits:
            check(block, held)
            held = []
            assert block.add(entry, run, offsets, OVERHEAD)
        rows_max, bytes_max = (max(rows_max, len(rows)), max(bytes_max, nbytes)) if not held else (rows_max, bytes_max)
        held += enumerate(rows, entry)
        entry += len(rows)
    check(block, held)


def check(block: PayloadBlock, held: list[tuple[int, Row]]) -> None:
    """Check the content of a block, which is empty afterwards."""
    assert (block.rows, block.nbytes) == (len(held), sum(len(body) for _, (_, _, body) in held))
    ids, lacs, lengths, sizes, bodies = taken(block)
    assert ids == [entry for entry, _ in held]
    assert list(zip(lacs, lengths, bodies, strict=True)) == [row for _, row in held]
    assert sizes == list(map(len, bodies))
    assert (block.rows, block.nbytes) == (0, 0)


def test_columns_stay_as_they_are() -> None:
    """The memory of a block is used again only when nothing refers to its columns."""
    block = PayloadBlock(1 << 20, 100)
    kept = []
    for number in range(20):
        run, offsets = run_of(number, [(0, 0, bytes([number]) * 5000)] * 10)
        assert block.add(number, run, offsets, OVERHEAD)
        values = block.take()[5]
        assert values is not None
        kept.append((number, values))
        if number % 3 == 0:
            kept.pop(0)
    assert all(bytes(values) == bytes([number]) * 50000 for number, values in kept)


def test_without_values() -> None:
    """A block without payloads has the other columns, and room for entries of any size."""
    block = PayloadBlock(10, 4, values=False)
    run, offsets = run_of(3, [(1, 20, b"a" * 20), (2, 50, b"b" * 30)])
    assert block.add(3, run, offsets, OVERHEAD)
    assert block.add(5, run, offsets, OVERHEAD)
    assert not block.add(7, run, offsets, OVERHEAD)
    ids, lacs, lengths, sizes, edges, values = block.take()
    assert np.frombuffer(ids, dtype=np.int64).tolist() == [3, 4, 5, 6]
    assert np.frombuffer(lacs, dtype=np.int64).tolist() == [1, 2, 1, 2]
    assert np.frombuffer(lengths, dtype=np.int64).tolist() == [20, 50, 20, 50]
    assert np.frombuffer(sizes, dtype=np.int32).tolist() == [20, 30, 20, 30]
    assert edges is values is None


def test_refusals() -> None:
    """Wrong offsets, a small overhead, an empty block and impossible limits are refused; the block stays as it was."""
    block = PayloadBlock(100, 10)
    run, offsets = run_of(0, [(0, 0, b"body")])
    with pytest.raises(ValueError, match="do not belong"):
        block.add(0, run, offsets + 1, OVERHEAD)
    with pytest.raises(ValueError, match="record 0 is shorter"):
        block.add(0, run, offsets, len(run) + 1)
    with pytest.raises(ValueError, match="header"):
        block.add(0, run, offsets, 35)
    with pytest.raises(ValueError, match="no entries"):
        block.take()
    for limits in ((-1, 1), (1 << 31, 1), (1, 0)):
        with pytest.raises(ValueError, match="at least one entry"):
            PayloadBlock(*limits)
