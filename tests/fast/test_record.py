"""Test runs of entries and their digests against the plain-Python models, with every bit of damage found."""

import hashlib
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookie._fast.wire import record
from bookie._fast.wire.digest import Digester
from tests.reference import record as model

KINDS = st.sampled_from([model.CRC32, model.HMAC, model.CRC32C, model.DUMMY])
PAYLOADS = st.lists(st.binary(max_size=200), max_size=8)


def digester(kind: int, password: bytes = b"pw") -> Digester:
    """Return a compiled digester with the key that Apache BookKeeper derives from the password."""
    return Digester(kind, hashlib.sha1(b"mac" + password).digest())


def run_of(kind: int, ledger: int, first: int, payloads: list[bytes]) -> bytes:
    """Return a run of sealed entries with the ids first, first + 1, …"""
    return model.pack(
        [model.seal(kind, b"pw", (ledger, first + k, first + k - 1, 0), p) for k, p in enumerate(payloads)]
    )


@given(st.lists(st.binary(max_size=40), max_size=6), st.integers(0, 60))
def test_offsets_like_the_model(entries: list[bytes], cut: int) -> None:
    """Whole runs give n + 1 offsets, and a run that ends inside a record is refused."""
    run = model.pack(entries)
    torn = run[: max(0, len(run) - cut)]
    whole, complete = model.unpack(torn)
    if not complete:
        with pytest.raises(ValueError, match=f"inside record {len(whole)}"):
            record.offsets(torn)
        return
    offsets = record.offsets(torn)
    assert [torn[a + 4 : b] for a, b in itertools.pairwise(offsets)] == whole
    assert offsets[-1] == len(torn)


def test_length_beyond_the_end() -> None:
    """A length of 2^32 - 1 causes no overflow."""
    with pytest.raises(ValueError, match="inside record 1"):
        record.offsets(model.pack([b"a"]) + b"\xff\xff\xff\xff" + bytes(8))


@given(KINDS, st.integers(0, 2**62), st.integers(0, 2**40), PAYLOADS)
def test_whole_run_verifies(kind: int, ledger: int, first: int, payloads: list[bytes]) -> None:
    """Every entry of an undamaged run is valid, and none is valid for another ledger."""
    run = run_of(kind, ledger, first, payloads)
    offsets = record.offsets(run)
    assert record.verify(digester(kind), run, offsets, ledger, first) == len(payloads)
    assert record.verify(digester(kind), run, offsets, ledger + 1, first) == 0


@given(KINDS, PAYLOADS.filter(bool), st.data())
def test_damage_is_found(kind: int, payloads: list[bytes], data: st.DataObject) -> None:
    """A flipped bit in entry k is found at k, except with DUMMY, which covers only ledger and entry id."""
    run = bytearray(run_of(kind, 7, 0, payloads))
    offsets = record.offsets(run)
    k = data.draw(st.integers(0, len(payloads) - 1))
    at = data.draw(st.integers(int(offsets[k]) + 4, int(offsets[k + 1]) - 1))
    run[at] ^= 1 << data.draw(st.integers(0, 7))
    expected = model.holds(kind, b"pw", bytes(run[offsets[k] + 4 : offsets[k + 1]]), 7, k)
    assert record.verify(digester(kind), run, offsets, 7, 0) == (len(payloads) if expected else k)
    assert expected == (kind == model.DUMMY and at - offsets[k] - 4 >= 16)


@given(KINDS, st.integers(0, 60))
def test_short_entry_is_no_entry(kind: int, size: int) -> None:
    """An entry without space for its digest is never valid, and nothing after it is read."""
    stored = model.seal(kind, b"pw", (7, 0, -1, 0), b"")[:size]
    assert record.entry_is_valid(digester(kind), stored, 7, 0) == (size >= 32 + model.SIZES[kind])


@pytest.mark.parametrize("offsets", [[0, 3], [1, 45], [0, 46], [0, 60, 45], [-4, 45], []])
def test_foreign_offsets_are_refused(offsets: list[int]) -> None:
    """Offsets that do not belong to the run are refused, and nothing outside of the run is read."""
    run = run_of(model.CRC32C, 7, 0, [b"hello"])
    with pytest.raises(ValueError, match="do not belong to a run of"):
        record.verify(digester(model.CRC32C), run, np.array(offsets, dtype=np.int64), 7, 0)
