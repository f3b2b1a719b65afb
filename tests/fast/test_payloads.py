"""Test entries of a batch one by one, and their payloads in one piece, against plain slices."""

import itertools
import struct
import weakref
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookie._fast.wire import payloads, record
from bookie._fast.wire.payloads import Entry, EntryIterator
from tests.reference import record as model

OVERHEAD = 4 + 36


def run_of(bodies: list[bytes]) -> memoryview:
    """Return records whose payloads are `bodies`."""
    return memoryview(model.pack([bytes(OVERHEAD - 4) + body for body in bodies]))


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=20), st.integers(0, 2**62))
def test_entries_are_views_of_the_run(bodies: list[bytes], first: int) -> None:
    """Each entry has its id and exactly its payload, without a copy, and so has the packed form."""
    run = run_of(bodies)
    offsets = record.offsets(run)
    entries = list(EntryIterator(run, offsets, OVERHEAD, first))
    assert [(entry.id, bytes(entry.data)) for entry in entries] == list(enumerate(bodies, first))
    for entry, body in zip(entries, bodies, strict=True):
        view = entry.data
        assert (view.obj, view.nbytes, len(view), view.contiguous) == (run.obj, len(body), len(body), True)
        assert (view.tobytes(), bytes(view[: len(body) // 2]), view.hex()) == (body, body[: len(body) // 2], body.hex())
        assert (view.format, view.itemsize, view.ndim, view.shape, view.strides) == ("B", 1, 1, (len(body),), (1,))
        assert memoryview(view) == body
        assert list(view[::-1]) == list(body[::-1])
    values, edges = payloads.pack([(run, offsets)], OVERHEAD)
    assert values.tobytes() == b"".join(bodies)
    assert [values[a:b].tobytes() for a, b in itertools.pairwise(edges)] == bodies
    assert edges.dtype == np.int32


def test_what_is_kept_stays_as_it_is() -> None:
    """Entry objects are reused only if nothing refers to them: kept entries, views and slices do not change."""
    bodies = [b"body %d" % k for k in range(60)]
    run = run_of(bodies)
    kept: dict[int, Any] = {}
    for place, entry in enumerate(EntryIterator(run, record.offsets(run), OVERHEAD, 0)):
        assert (entry.id, bytes(entry.data), hash(entry.data)) == (place, bodies[place], hash(bodies[place]))
        if place % 6 == 0:
            kept[place] = entry
        elif place % 6 == 1:
            kept[place] = entry.data
        elif place % 6 == 2:
            kept[place] = np.frombuffer(entry.data, dtype=np.uint8)
        elif place % 6 == 3:
            kept[place] = entry.data[1:]
        elif place % 6 == 4:
            kept[place] = weakref.ref(entry.data)
        else:
            with entry.data as view:
                assert view == bodies[place]
    for place, thing in kept.items():
        if place % 6 == 4:
            assert thing() is None or thing() == bodies[place]
        else:
            data = thing.data if place % 6 == 0 else thing
            assert bytes(data) == bodies[place][place % 6 == 3 :]


def test_part_of_a_run() -> None:
    """Offsets may start anywhere in the run."""
    run = run_of([b"zero", b"one", b"two"])
    part = record.offsets(run)[1:]
    assert [bytes(entry.data) for entry in EntryIterator(run, part, OVERHEAD, 1)] == [b"one", b"two"]
    assert payloads.pack([(run, part)], OVERHEAD)[0].tobytes() == b"onetwo"


@pytest.mark.parametrize(
    ("offsets", "match"),
    [
        ([], "do not belong"),
        ([0, 500], "do not belong"),
        ([-1, 44], "do not belong"),
        ([0, 8, 44], "record 0 is shorter"),
    ],
)
def test_wrong_offsets(offsets: list[int], match: str) -> None:
    """Offsets that do not fit the run are refused."""
    run = run_of([b"body"])
    for reader in (
        lambda edges: EntryIterator(run, edges, OVERHEAD, 0),
        lambda edges: payloads.pack([(run, edges)], OVERHEAD),
    ):
        with pytest.raises(ValueError, match=match):
            reader(np.array(offsets, dtype=np.int64))


def test_entry() -> None:
    """Entries are equal by id and payload, and repr() shows both."""
    entry = Entry(3, memoryview(b"abc"))
    assert entry == Entry(3, memoryview(b"abc"))
    assert entry != Entry(4, memoryview(b"abc"))
    assert entry != object()
    assert repr(entry) == "Entry(id=3, data=b'abc')"


@given(st.lists(st.lists(st.tuples(st.integers(-1, 2**62), st.integers(0, 2**62), st.binary(max_size=9)), max_size=6)))
def test_runs_become_columns(runs: list[list[tuple[int, int, bytes]]]) -> None:
    """Several runs give the columns of payloads, sizes, and the LACs and lengths in their headers."""
    stored = [
        [struct.pack(">qqqq", 7, k, lac, length) + bytes(4) + body for k, (lac, length, body) in enumerate(run)]
        for run in runs
    ]
    given_runs = [(memoryview(model.pack(run)), record.offsets(memoryview(model.pack(run)))) for run in stored]
    values, edges = payloads.pack(given_runs, OVERHEAD)
    sizes, lacs, lengths = payloads.heads(given_runs, OVERHEAD)
    rows = [row for run in runs for row in run]
    assert [values[a:b].tobytes() for a, b in itertools.pairwise(edges)] == [body for _, _, body in rows]
    assert sizes.tolist() == [len(body) for _, _, body in rows]
    assert lacs.tolist() == [lac for lac, _, _ in rows]
    assert lengths.tolist() == [length for _, length, _ in rows]
    with pytest.raises(ValueError, match="header"):
        payloads.heads(given_runs, 35)
