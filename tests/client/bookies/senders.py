"""The owner of a sender that records its calls, and entries to send."""

import asyncio
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bookie.client import Digest
from bookie.errors import BookKeeperError
from tests.reference import record as entries

DIGEST = Digest.of()


class Owner:
    """Records the calls of a sender; wait for responses with `until`."""

    def __init__(self) -> None:
        self.codes: dict[int, list[int]] = {}
        self.answers = 0
        self.errors: list[BookKeeperError] = []
        self.rooms = 0
        self.changed = asyncio.Event()

    def answered(self, entries: NDArray[np.int64], codes: NDArray[np.int32]) -> None:
        """Record responses."""
        for entry, code in zip(entries.tolist(), codes.tolist(), strict=True):
            self.codes.setdefault(entry, []).append(code)
        self.answers += len(entries)
        self.changed.set()

    def lost(self, error: BookKeeperError) -> None:
        """Record the end of the sender."""
        self.errors.append(error)
        self.changed.set()

    def on_room(self) -> None:
        """Record that there is room again."""
        self.rooms += 1
        self.changed.set()

    async def until(self, count: int) -> None:
        """Wait until this many responses have arrived, or the sender was lost."""
        while self.answers < count and not self.errors:
            self.changed.clear()
            await asyncio.wait_for(self.changed.wait(), 60)


def sealed(ledger: int, entry: int, payload: bytes) -> bytes:
    """Return an entry as stored."""
    return DIGEST.seal(ledger, entry, payload, lac=entry - 1, length=len(payload))


def records(ledger: int, ids: Sequence[int], size: int = 100) -> tuple[bytes, NDArray[np.int64], NDArray[np.int64]]:
    """Return records, offsets and entry ids, which is what a sender sends. Each payload names its entry."""
    packed = [entries.pack([sealed(ledger, entry, str(entry).encode().ljust(size, b"."))]) for entry in ids]
    offsets = np.cumsum([0, *map(len, packed)], dtype=np.int64)
    return b"".join(packed), offsets, np.array(ids, dtype=np.int64)
