"""What a reader of a ledger gets: verified entries, as views of the one buffer that they arrived in.

Any thread; nothing here changes after it was made. `StoredBatch` (module `entries.batch`) is the same bytes before
anybody looked at the digests.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Self, overload

import numpy as np
from numpy.typing import NDArray

from bookie._fast.client.read_run import ReadRange
from bookie._fast.wire import payloads, record
from bookie._fast.wire.payloads import Entry, EntryIterator
from bookie.client.entries.batch import LENGTH_PREFIX, StoredBatch
from bookie.client.entries.digest import Digest
from bookie.errors import BookKeeperError, DigestMismatch

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Entry", "EntryBatch"]

PLACE_MAX = 2**31 - 1
INLINE_BYTES = 12
"""Payloads so short lie in Arrow's view itself."""


class EntryBatch(Sequence[Entry]):
    """Entries `first` to `last` of one ledger, one at least, each with a digest that holds.

    `for entry in batch: entry.id, entry.data`; data is a memoryview of the payload, valid as long as anything refers to
    it, and keeps the buffer of the whole batch alive: take `bytes(entry.data)` of what is kept for long. `batch[k]` is
    the entry at place k. `lac`: what the bookie that answered knew, None when it did not say.
    """

    __slots__ = ("_offsets", "_overhead", "buffer", "first", "lac", "ledger")

    def __init__(
        self,
        ledger: int,
        first: int,
        buffer: memoryview,
        offsets: NDArray[np.int64],
        overhead: int,
        lac: int | None = None,
    ) -> None:
        """Record k is buffer[offsets[k]:offsets[k + 1]], its first `overhead` bytes are not payload."""
        self.ledger = ledger
        self.first = first
        self.buffer = buffer
        self.lac = lac
        self._offsets = offsets
        self._overhead = overhead

    @classmethod
    def verified(cls, stored: StoredBatch, digest: Digest, last: int) -> Self:
        """The entries of an answer up to `last`, and up to the first that does not hold.

        DigestMismatch when that is the very first one.
        """
        count = min(len(stored), last - stored.first + 1)
        offsets = stored.offsets[: count + 1]
        run = stored.buffer[: int(offsets[-1])]
        good = record.verify(digest.digester, run, offsets, stored.ledger, stored.first)
        if good == 0:
            raise DigestMismatch(
                f"ledger {stored.ledger}, entry {stored.first}: no valid {digest.type.name} digest;"
                " read another replica, or check digest type and password"
            )
        overhead = LENGTH_PREFIX + digest.overhead
        return cls(stored.ledger, stored.first, run, offsets[: good + 1], overhead, stored.lac)

    @classmethod
    def of_range(cls, entries: ReadRange, count: int, digest: Digest) -> Self:
        """The first entries of a range that was read one by one."""
        run, offsets = entries.run(count)
        return cls(entries.ledger, entries.first, run.data, offsets, LENGTH_PREFIX + digest.overhead)

    @classmethod
    def joined(cls, batches: Sequence["EntryBatch"]) -> "EntryBatch":
        """Batches that follow each other, in one buffer; one alone as it is."""
        head = batches[0]
        if len(batches) == 1:
            return head
        sizes = np.concatenate([np.diff(batch._offsets) for batch in batches])
        run = b"".join(batch.buffer[batch._offsets[0] : batch._offsets[-1]] for batch in batches)
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        return cls(head.ledger, head.first, memoryview(run), offsets, head._overhead, head.lac)

    @classmethod
    def of_entries(cls, ledger: int, first: int, entries: Iterable[bytes], digest: Digest) -> Self:
        """Entries as stored that came one by one and are verified already, copied together."""
        pieces: list[bytes] = []
        for entry in entries:
            pieces.append(len(entry).to_bytes(LENGTH_PREFIX, "big"))
            pieces.append(entry)
        run = memoryview(b"".join(pieces))
        return cls(ledger, first, run, record.offsets(run), LENGTH_PREFIX + digest.overhead)

    def __len__(self) -> int:
        return len(self._offsets) - 1

    @property
    def last(self) -> int:
        """The id of the last entry."""
        return self.first + len(self._offsets) - 2

    @property
    def nbytes(self) -> int:
        """Bytes of the entries as they lie in `buffer`."""
        return int(self._offsets[-1] - self._offsets[0])

    def fitting(self, nbytes: int) -> int:
        """How many entries, from the first on, have at most so many bytes in all."""
        return max(int(np.searchsorted(self._offsets, self._offsets[0] + nbytes, side="right")) - 1, 0)

    def __iter__(self) -> EntryIterator:
        return EntryIterator(self.buffer, self._offsets, self._overhead, self.first)

    @overload
    def __getitem__(self, place: int) -> Entry: ...
    @overload
    def __getitem__(self, place: slice) -> "EntryBatch": ...
    def __getitem__(self, place: int | slice) -> "Entry | EntryBatch":
        """The entry at a place, or those of a slice without steps. IndexError."""
        if isinstance(place, slice):
            start, stop, step = place.indices(len(self))
            if step != 1 or start >= stop:
                raise IndexError(f"{place}: take a slice of one entry at least, without steps")
            offsets = self._offsets[start : stop + 1]
            return EntryBatch(self.ledger, self.first + start, self.buffer, offsets, self._overhead, self.lac)
        count = len(self)
        if not -count <= place < count:
            raise IndexError(f"place {place} of a batch of {count} entries")
        place %= count
        start, stop = self._offsets[place : place + 2].tolist()
        return Entry(self.first + place, self.buffer[start + self._overhead : stop])

    def __repr__(self) -> str:
        return f"<EntryBatch of ledger {self.ledger}, entries {self.first} to {self.last}, {self.nbytes} bytes>"

    def payload_spans(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Start and end of each payload in `buffer`."""
        return self._offsets[:-1] + self._overhead, self._offsets[1:]

    def stored(self, place: int) -> memoryview:
        """The entry at a place as the bookie stores it, header and digest included."""
        start, stop = self._offsets[place : place + 2].tolist()
        return self.buffer[start + LENGTH_PREFIX : stop]

    @staticmethod
    def packed(batches: Sequence["EntryBatch"]) -> tuple[NDArray[np.uint8], NDArray[np.int32]]:
        """The payloads of batches of one ledger side by side, and the n + 1 places where they begin and end.

        One copy of all, none per entry. ValueError: 2 GiB or more.
        """
        return payloads.pack([(batch.buffer, batch._offsets) for batch in batches], batches[0]._overhead)

    @staticmethod
    def headers(
        batches: Sequence["EntryBatch"],
    ) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]:
        """Of each entry of such batches: bytes of payload, the LAC it carries, the ledger's bytes so far."""
        return payloads.heads([(batch.buffer, batch._offsets) for batch in batches], batches[0]._overhead)

    def to_arrow(self, *, copy: bool = True) -> "pa.RecordBatch":
        """A record batch with the columns `id` (int64) and `data` (binary); one copy of all payloads, none per entry.

        With `copy=False` `data` is a binary_view into this batch's buffer, which lives as long as that; not all that
        reads Arrow takes it. Needs pyarrow: `pip install bookie[arrow]`.
        """
        try:
            import pyarrow as pa  # noqa: PLC0415
        except ImportError as error:
            raise BookKeeperError("to_arrow needs pyarrow: pip install 'bookie[arrow]'") from error
        kind, buffers = (pa.binary(), EntryBatch.packed([self])[::-1]) if copy else (pa.binary_view(), self._views())
        ids = pa.array(np.arange(self.first, self.first + len(self), dtype=np.int64))
        data = pa.Array.from_buffers(kind, len(self), [None, *map(pa.py_buffer, buffers)])
        return pa.record_batch([ids, data], names=["id", "data"])

    def _views(self) -> tuple[NDArray[np.int32], memoryview]:
        """Arrow's views of the payloads, 16 bytes each, and what they look into.

        A view is a size and, up to 12 bytes, the payload; else its first 4 bytes, a buffer's number, and its place.
        ValueError beyond 2 GiB.
        """
        starts, ends = self.payload_spans()
        sizes = ends - starts
        run = np.frombuffer(self.buffer, dtype=np.uint8)
        if ends[-1] > PLACE_MAX:
            raise ValueError(f"payloads lie up to byte {ends[-1]}; views reach {PLACE_MAX}: read smaller batches")
        place = np.arange(INLINE_BYTES)
        views = np.zeros((len(self), 4), dtype=np.int32)
        heads = run[np.minimum(starts[:, None] + place, len(run) - 1)]
        views[:, 0] = sizes
        views[:, 1:] = np.where(place < sizes[:, None], heads, 0).astype(np.uint8).view(np.int32)
        far = sizes > INLINE_BYTES
        views[far, 2] = 0
        views[far, 3] = starts[far]
        return views, self.buffer
