"""The bookie that entries are copied to: a sender, and the number of its unanswered adds. Event loop."""

import asyncio
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

from bookie.client.contracts import Bookies
from bookie.client.wire.flags import Flags
from bookie.errors import BookKeeperError, error_from_client_code

__all__ = ["Target"]


class Target:
    """Sends recovery adds, which a fenced ledger accepts. Call `close` in the end."""

    def __init__(self, bookies: Bookies, bookie: str, ledger: int, master_key: bytes) -> None:
        self.bookie = bookie
        self._ledger = ledger
        self._pending = 0
        self._error: BookKeeperError | None = None
        self._change = asyncio.Event()
        self._sender = bookies.adds(bookie, ledger, master_key, self, flags=Flags.RECOVERY_ADD)

    async def send(self, records: Buffer, offsets: NDArray[np.int64], entries: NDArray[np.int64]) -> None:
        """Send entries as soon as there is room. Raises the error of an earlier add."""
        await self._until(lambda: not self._sender.full)
        self._pending += len(entries)
        self._sender.send(records, offsets, entries)

    async def finish(self) -> None:
        """Wait until everything that was sent is acknowledged. Raises the error of the first add that was refused."""
        await self._until(lambda: not self._pending)

    def close(self) -> None:
        """Ignore further responses."""
        self._sender.close()

    def answered(self, entries: NDArray[np.int64], codes: NDArray[np.int32]) -> None:
        """Handle responses."""
        self._pending -= len(entries)
        refused = np.flatnonzero(codes)
        if len(refused) and self._error is None:
            at = int(refused[0])
            error = error_from_client_code(int(codes[at]))
            self._error = error(f"ledger {self._ledger}, entry {int(entries[at])}: refused by {self.bookie}")
        self._change.set()

    def lost(self, error: BookKeeperError) -> None:
        """Handle that nothing more will be answered."""
        self._error = self._error or error
        self._change.set()

    def on_room(self) -> None:
        """Handle that more can be sent."""
        self._change.set()

    async def _until(self, fits: Callable[[], bool]) -> None:
        while self._error is None and not fits():
            self._change.clear()
            await self._change.wait()
        if self._error is not None:
            raise self._error
