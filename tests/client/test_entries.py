"""Batches of verified entries: what is cut off, which entry an error names, and the conversion to Arrow."""

import sys
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

from bookie.client import Digest, DigestType, Entry, EntryBatch, StoredBatch
from bookie.errors import BookKeeperError, DigestMismatch
from tests.reference import record as model

BODIES = [b"zero", b"", b"two", b"three"]


def stored(digest: Digest, damage: int | None = None) -> StoredBatch:
    """Return entries 5 to 8 of ledger 7 as a bookie sends them, with a flipped bit in the one at place `damage`."""
    entries = [digest.seal(7, 5 + k, body, lac=-1, length=0) for k, body in enumerate(BODIES)]
    if damage is not None:
        entries[damage] = entries[damage][:30] + bytes([entries[damage][30] ^ 1]) + entries[damage][31:]
    return StoredBatch(7, 5, memoryview(model.pack(entries)), 11)


@pytest.fixture(params=[DigestType.CRC32, DigestType.CRC32C, DigestType.HMAC, DigestType.DUMMY])
def digest(request: pytest.FixtureRequest) -> Digest:
    """A digest of each type."""
    return Digest.of(request.param, b"secret")


def test_a_batch_is_a_sequence(digest: Digest) -> None:
    """Length, places from both ends, slices and iteration are views of one buffer."""
    batch = EntryBatch.verified(stored(digest), digest, 100)
    assert (len(batch), batch.first, batch.last, batch.lac, batch.ledger) == (4, 5, 8, 11, 7)
    assert [(entry.id, bytes(entry.data)) for entry in batch] == list(enumerate(BODIES, 5))
    assert batch[-1] == Entry(8, memoryview(b"three")) == batch[3]
    assert [entry.id for entry in batch[1:3]] == [6, 7]
    assert batch[0].data.obj is batch.buffer.obj
    starts, ends = batch.payload_spans()
    assert [bytes(batch.buffer[a:b]) for a, b in zip(starts, ends, strict=True)] == BODIES
    assert bytes(digest.open(batch.stored(2), 7, 7).payload) == b"two"
    for place in (4, -5):
        with pytest.raises(IndexError, match="for a batch of 4 entries"):
            batch[place]
    for span in (slice(2, 2), slice(0, 4, 2)):
        with pytest.raises(IndexError, match="no step"):
            batch[span]


def test_clipped_to_the_last_wanted(digest: Digest) -> None:
    """BR5: entries beyond the last one that was requested are cut off."""
    batch = EntryBatch.verified(stored(digest), digest, 6)
    assert (len(batch), batch.last) == (2, 6)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_br3_damage_later_on_leaves_the_prefix(k: int) -> None:
    """BR3, L14: the entries before the first invalid one are returned."""
    digest = Digest.of()
    assert [bytes(entry.data) for entry in EntryBatch.verified(stored(digest, k), digest, 100)] == BODIES[:k]


def test_br3_damage_of_the_first_is_an_error() -> None:
    """BR3, L14: nothing is returned, and the error names the entry."""
    digest = Digest.of()
    with pytest.raises(DigestMismatch, match="ledger 7, entry 5: no valid CRC32C digest"):
        EntryBatch.verified(stored(digest, 0), digest, 100)


def batch_of_single_reads(digest: Digest) -> EntryBatch:
    """Return the same entries as from single reads."""
    sealed = (digest.seal(7, 5 + k, body, lac=-1, length=0) for k, body in enumerate(BODIES))
    return EntryBatch.of_entries(7, 5, sealed, digest)


@pytest.mark.parametrize(
    "make", [lambda digest: EntryBatch.verified(stored(digest), digest, 100), batch_of_single_reads]
)
def test_to_arrow(make: Callable[[Digest], EntryBatch]) -> None:
    """Ids and payloads become columns that Arrow accepts as valid, also for a slice."""
    batch = make(Digest.of())
    table = batch.to_arrow()
    table.validate(full=True)
    assert table.schema == pa.schema([("id", pa.int64()), ("data", pa.binary())])
    assert table.to_pydict() == {"id": [5, 6, 7, 8], "data": BODIES}
    assert batch[2:].to_arrow().to_pydict() == {"id": [7, 8], "data": BODIES[2:]}


@pytest.mark.parametrize("cut", [slice(None), slice(2, None)])
def test_to_arrow_without_a_copy(cut: slice) -> None:
    """Long payloads are views of the buffer, short ones are inside the views; the batch may be dropped before them."""
    bodies = [b"", b"x", b"twelve bytes", b"thirteen byte", b"L" * 1000, bytes(range(256)), b"end"]
    digest = Digest.of()
    sealed = (digest.seal(7, k, body, lac=-1, length=0) for k, body in enumerate(bodies))
    batch = EntryBatch.of_entries(7, 0, sealed, digest)[cut]
    table = batch.to_arrow(copy=False)
    table.validate(full=True)
    assert table.schema == pa.schema([("id", pa.int64()), ("data", pa.binary_view())])
    assert table["data"].buffers()[2].address == np.frombuffer(batch.buffer, dtype=np.uint8).ctypes.data
    del batch
    assert table["data"].to_pylist() == bodies[cut]


def test_arrow_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without pyarrow the error says what to install."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(BookKeeperError, match=r"pip install 'bookie\[arrow\]'"):
        batch_of_single_reads(Digest.of()).to_arrow()
