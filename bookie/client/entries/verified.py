"""Batches of verified entries, as views of the one buffer that they arrived in.

They may be used from any thread and never change. `StoredBatch` (module `entries.batch`) holds the same bytes before
the digests are verified.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Self, overload

import numpy as np
from numpy.typing import NDArray

from bookie._fast.client.payload_block import PayloadBlock
from bookie._fast.client.read_run import ReadRange
from bookie._fast.wire import payloads, record
from bookie._fast.wire.payloads import Entry, EntryIterator
from bookie.client.entries.batch import LENGTH_PREFIX, StoredBatch
from bookie.client.entries.digest import Digest
from bookie.errors import BookKeeperError, DigestMismatch

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Entry", "EntryBatch", "PayloadBlock"]

PLACE_MAX = 2**31 - 1
INLINE_BYTES = 12
"""Payloads of at most this size are kept inside an Arrow view."""


class EntryBatch(Sequence[Entry]):
    """One or more consecutive entries of one ledger, each with a valid digest: a sequence of `Entry`.

    Use `for entry in batch: entry.id, entry.data`, or `batch[k]` for the entry at place k. `entry.data` is a
    memoryview of the payload. It stays valid as long as anything refers to it, and keeps the buffer of the whole
    batch alive, so copy with `bytes(entry.data)` what is kept for long.

    Attributes:
        ledger: The id of the ledger.
        first: The id of the first entry.
        buffer: The bytes that the batch arrived in.
        lac: The LAC that the responding bookie knew, or None if it sent none.
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
        """Make a batch of records buffer[offsets[k]:offsets[k + 1]], where `overhead` bytes are in front of each
        payload.
        """
        self.ledger = ledger
        self.first = first
        self.buffer = buffer
        self.lac = lac
        self._offsets = offsets
        self._overhead = overhead

    @classmethod
    def verified(cls, stored: StoredBatch, digest: Digest, last: int) -> Self:
        """Return the valid entries of a response up to entry `last`; an invalid entry ends the batch before it.

        Args:
            stored: The response to a batch read.
            digest: The digest of the ledger.
            last: The highest entry id to return.

        Raises:
            DigestMismatch: The first entry is invalid.
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
        """Return the first entries of a range that was read entry by entry and is verified.

        Args:
            entries: The range.
            count: The number of entries, at least 1.
            digest: The digest of the ledger.
        """
        run, offsets = entries.run(count)
        return cls(entries.ledger, entries.first, run.data, offsets, LENGTH_PREFIX + digest.overhead)

    @classmethod
    def joined(cls, batches: Sequence["EntryBatch"]) -> "EntryBatch":
        """Copy consecutive batches into one buffer; a single batch is returned as it is.

        Args:
            batches: One or more batches of the same ledger, each beginning where the one before ends.
        """
        head = batches[0]
        if len(batches) == 1:
            return head
        sizes = np.concatenate([np.diff(batch._offsets) for batch in batches])
        run = b"".join(batch.buffer[batch._offsets[0] : batch._offsets[-1]] for batch in batches)
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        return cls(head.ledger, head.first, memoryview(run), offsets, head._overhead, head.lac)

    @classmethod
    def of_entries(cls, ledger: int, first: int, entries: Iterable[bytes], digest: Digest) -> Self:
        """Copy entries that were read one by one, and are verified, into one batch.

        Args:
            ledger: The id of the ledger.
            first: The id of the first entry.
            entries: Consecutive entries as stored, one or more.
            digest: The digest of the ledger.
        """
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
        """The size of the entries in `buffer` in bytes, headers and digests included."""
        return int(self._offsets[-1] - self._offsets[0])

    def fitting(self, nbytes: int) -> int:
        """Count the entries from the first on that fit into a number of bytes.

        Args:
            nbytes: The bytes available for records, with headers, digests and lengths.

        Returns:
            The number of entries; it may be 0.
        """
        return max(int(np.searchsorted(self._offsets, self._offsets[0] + nbytes, side="right")) - 1, 0)

    def __iter__(self) -> EntryIterator:
        return EntryIterator(self.buffer, self._offsets, self._overhead, self.first)

    @overload
    def __getitem__(self, place: int) -> Entry: ...
    @overload
    def __getitem__(self, place: slice) -> "EntryBatch": ...
    def __getitem__(self, place: int | slice) -> "Entry | EntryBatch":
        """Return the entry at a place, or the batch of a slice, which must not be empty or have a step. Raises
        IndexError.
        """
        if isinstance(place, slice):
            start, stop, step = place.indices(len(self))
            if step != 1 or start >= stop:
                raise IndexError(f"{place}: the slice must have at least one entry, and no step")
            offsets = self._offsets[start : stop + 1]
            return EntryBatch(self.ledger, self.first + start, self.buffer, offsets, self._overhead, self.lac)
        count = len(self)
        if not -count <= place < count:
            raise IndexError(f"place {place} is out of range for a batch of {count} entries")
        place %= count
        start, stop = self._offsets[place : place + 2].tolist()
        return Entry(self.first + place, self.buffer[start + self._overhead : stop])

    def __repr__(self) -> str:
        return f"<EntryBatch of ledger {self.ledger}, entries {self.first} to {self.last}, {self.nbytes} bytes>"

    def payload_spans(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return where the payloads begin and end in `buffer`.

        Returns:
            The starts and the ends, int64 arrays of shape (n,), which the caller may change.
        """
        return self._offsets[:-1] + self._overhead, self._offsets[1:].copy()  # others may have the same offsets

    def stored(self, place: int) -> memoryview:
        """Return an entry as the bookie stores it, with header and digest.

        Args:
            place: The place of the entry in the batch, 0 for the first one.

        Returns:
            A view of `buffer`.
        """
        start, stop = self._offsets[place : place + 2].tolist()
        return self.buffer[start + LENGTH_PREFIX : stop]

    @staticmethod
    def packed(batches: Sequence["EntryBatch"]) -> tuple[NDArray[np.uint8], NDArray[np.int32]]:
        """Copy the payloads of batches of one ledger into one array. There is one copy in all, and no work in Python
        per entry.

        Args:
            batches: One or more batches of the same ledger.

        Returns:
            The payloads one after the other, uint8, and their offsets, int32, shape (n + 1,): payload k is
                payloads[offsets[k]:offsets[k + 1]].

        Raises:
            ValueError: The payloads take 2 GiB or more.
        """
        return payloads.pack([(batch.buffer, batch._offsets) for batch in batches], batches[0]._overhead)

    def add_to(self, block: PayloadBlock) -> bool:
        """Copy the entries into a block of columns.

        Args:
            block: The block. If it is empty, it grows for this batch.

        Returns:
            Whether they follow its last entry and had room; if not, nothing was copied.
        """
        return block.add(self.first, self.buffer, self._offsets, self._overhead)

    def to_arrow(self, *, copy: bool = True) -> "pa.RecordBatch":
        """Return the entries as an Arrow record batch with the columns `id` (int64) and `data`. Needs pyarrow.

        Args:
            copy: If true, `data` is a binary column, made with one copy of all payloads. If false, it is a
                binary_view column into this batch's buffer, which it keeps alive; not all readers of Arrow data
                support that type.

        Raises:
            BookKeeperError: pyarrow is not installed; use `pip install bookie[arrow]`.
            ValueError: The batch is larger than 2 GiB.
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
        """Return Arrow's views of the payloads, 16 bytes each, and the buffer that they refer to.

        A view has the size, and then either a payload of up to 12 bytes, or its first 4 bytes, the number of the
        buffer, and the position in it. Raises ValueError beyond 2 GiB.
        """
        starts, ends = self.payload_spans()
        sizes = ends - starts
        run = np.frombuffer(self.buffer, dtype=np.uint8)
        if ends[-1] > PLACE_MAX:
            raise ValueError(f"the payloads end at byte {ends[-1]}; views reach {PLACE_MAX}: read smaller batches")
        place = np.arange(INLINE_BYTES)
        views = np.zeros((len(self), 4), dtype=np.int32)
        heads = run[np.minimum(starts[:, None] + place, len(run) - 1)]
        views[:, 0] = sizes
        views[:, 1:] = np.where(place < sizes[:, None], heads, 0).astype(np.uint8).view(np.int32)
        far = sizes > INLINE_BYTES
        views[far, 2] = 0
        views[far, 3] = starts[far]
        return views, self.buffer
