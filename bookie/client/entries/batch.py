"""The answer to a batch read: one buffer of records and numpy offsets into it, never a list of bytes.

Any thread. A batch owns the buffer that it was received in: views of it stay valid as long as anything refers to them.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from bookie._fast.wire import record
from bookie.client.entries.digest import Digest
from bookie.errors import DigestMismatch

LENGTH_PREFIX = 4


class StoredBatch:
    """Entries first, first + 1, … of one ledger, as stored (header and digest included).

    `buffer` is a run of `u32 length | entry`; record k lies at [offsets[k], offsets[k + 1]), int64, n + 1 of them.
    `lac`: the highest one that the bookie knew, if it said so (V3). ValueError when the buffer ends inside a record, or
    holds none.
    """

    __slots__ = ("buffer", "first", "lac", "ledger", "offsets")

    def __init__(self, ledger: int, first: int, buffer: memoryview, lac: int | None = None) -> None:
        if not len(buffer):
            raise ValueError("a batch without entries")
        self.lac = lac
        self.ledger = ledger
        self.first = first
        self.buffer = buffer
        self.offsets: NDArray[np.int64] = record.offsets(buffer)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def end(self) -> int:
        """One past the last entry id."""
        return self.first + len(self)

    def __getitem__(self, entry: int) -> memoryview:
        """The stored bytes of an entry by its id. IndexError when the batch does not hold it."""
        if not self.first <= entry < self.end:
            raise IndexError(f"entry {entry} is not in this batch of entries {self.first} to {self.end - 1}")
        start, stop = self.offsets[entry - self.first : entry - self.first + 2].tolist()
        return self.buffer[start + LENGTH_PREFIX : stop]

    def __iter__(self) -> Iterator[tuple[int, memoryview]]:
        edges = self.offsets.tolist()
        for k in range(len(edges) - 1):
            yield self.first + k, self.buffer[edges[k] + LENGTH_PREFIX : edges[k + 1]]

    def good(self, digest: Digest, start: int = 0) -> int:
        """How many entries hold, ledger, id and digest, from place `start` up to the first that does not."""
        at = int(self.offsets[start])
        return record.verify(
            digest.digester, self.buffer[at:], self.offsets[start:] - at, self.ledger, self.first + start
        )

    def verify(self, digest: Digest) -> None:
        """Check ledger, id and digest of every entry. DigestMismatch names the first that fails."""
        good = record.verify(digest.digester, self.buffer, self.offsets, self.ledger, self.first)
        if good < len(self):
            raise DigestMismatch(
                f"ledger {self.ledger}, entry {self.first + good}: no valid {digest.type.name} digest;"
                " read another replica, or check digest type and password"
            )

    def payload_spans(self, digest: Digest) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Start and end of each payload in `buffer`; meaningful after `verify`."""
        return self.offsets[:-1] + (LENGTH_PREFIX + digest.overhead), self.offsets[1:]

    def payloads(self, digest: Digest) -> Iterator[tuple[int, memoryview]]:
        """(entry id, view of its payload); meaningful after `verify`."""
        starts, ends = self.payload_spans(digest)
        for k, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
            yield self.first + k, self.buffer[start:end]
