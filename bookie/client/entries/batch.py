"""The response to a batch read: one buffer of records and numpy offsets into it, never a list of bytes objects.

Batches may be used from any thread. A batch owns the buffer that it was received in, so views of it stay valid as
long as anything refers to them.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from bookie._fast.wire import record
from bookie.client.entries.digest import Digest
from bookie.errors import DigestMismatch

LENGTH_PREFIX = 4


class StoredBatch:
    """Entries first, first + 1, ... of one ledger, as stored (header and digest included).

    Attributes:
        ledger: The id of the ledger.
        first: The id of the first entry.
        buffer: The records, each of them `u32 length | entry`, one after the other.
        offsets: int64, shape (n + 1,): record k is buffer[offsets[k]:offsets[k + 1]].
        lac: The highest LAC that the bookie knew, or None if it sent none (V2).

    Raises:
        ValueError: The buffer is empty, or it ends inside a record.
    """

    __slots__ = ("buffer", "first", "lac", "ledger", "offsets")

    def __init__(self, ledger: int, first: int, buffer: memoryview, lac: int | None = None) -> None:
        if not len(buffer):
            raise ValueError("the batch has no entries")
        self.lac = lac
        self.ledger = ledger
        self.first = first
        self.buffer = buffer
        self.offsets: NDArray[np.int64] = record.offsets(buffer)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def end(self) -> int:
        """One past the id of the last entry."""
        return self.first + len(self)

    def __getitem__(self, entry: int) -> memoryview:
        """Return the stored bytes of the entry with this id. Raises IndexError if the batch does not hold it."""
        if not self.first <= entry < self.end:
            raise IndexError(f"entry {entry} is not in this batch of entries {self.first} to {self.end - 1}")
        start, stop = self.offsets[entry - self.first : entry - self.first + 2].tolist()
        return self.buffer[start + LENGTH_PREFIX : stop]

    def __iter__(self) -> Iterator[tuple[int, memoryview]]:
        edges = self.offsets.tolist()
        for k in range(len(edges) - 1):
            yield self.first + k, self.buffer[edges[k] + LENGTH_PREFIX : edges[k + 1]]

    def good(self, digest: Digest, start: int = 0) -> int:
        """Count the valid entries from one on, up to the first entry whose ledger, id or digest is wrong.

        Args:
            digest: The digest of the ledger.
            start: The place in the batch to begin with, 0 for the first entry.

        Returns:
            The number of valid entries.
        """
        at = int(self.offsets[start])
        return record.verify(
            digest.digester, self.buffer[at:], self.offsets[start:] - at, self.ledger, self.first + start
        )

    def verify(self, digest: Digest) -> None:
        """Verify the ledger, the id and the digest of every entry.

        Args:
            digest: The digest of the ledger.

        Raises:
            DigestMismatch: An entry is wrong; the text names the first one.
        """
        good = record.verify(digest.digester, self.buffer, self.offsets, self.ledger, self.first)
        if good < len(self):
            raise DigestMismatch(
                f"ledger {self.ledger}, entry {self.first + good}: no valid {digest.type.name} digest;"
                " read another replica, or check digest type and password"
            )

    def payload_spans(self, digest: Digest) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return where the payloads begin and end in `buffer`. Call `verify` before.

        Args:
            digest: The digest of the ledger.

        Returns:
            The starts and the ends, int64 arrays of shape (n,).
        """
        return self.offsets[:-1] + (LENGTH_PREFIX + digest.overhead), self.offsets[1:]

    def payloads(self, digest: Digest) -> Iterator[tuple[int, memoryview]]:
        """Yield the id of each entry with a view of its payload. Call `verify` before.

        Args:
            digest: The digest of the ledger.
        """
        starts, ends = self.payload_spans(digest)
        for k, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
            yield self.first + k, self.buffer[start:end]
