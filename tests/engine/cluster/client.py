"""The real client's requests to single bookies, with the answers to fencing reads in the history of the world."""

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from bookie.client.bookies.client import BookieClient
from bookie.client.config import ClientConfig
from bookie.client.entries.batch import StoredBatch
from bookie.client.entries.read_answers import ReadAnswers
from bookie.client.wire.answers_v3 import ReadAnswer
from bookie.client.wire.flags import LAST_ENTRY, Flags
from bookie.errors import BookKeeperError
from tests.sim.events import Event

T = TypeVar("T")


class RecordedBookies(BookieClient):
    """A client's bookies. A bookie's answers are recorded from the fence on, which the client needs for a recovery."""

    def __init__(self, config: ClientConfig, who: str, history: list[Event]) -> None:
        super().__init__(config)
        self.who = who
        self.history = history
        self.alive = True
        self._fenced: set[str] = set()
        self._loop = asyncio.get_running_loop()

    def crash(self) -> None:
        """End the process of this client: what it sent stays sent, and it learns nothing more."""
        self.alive = False
        self._ending = self._loop.create_task(self.close())

    async def read(
        self, bookie: str, ledger: int, entry: int, *, flags: int = 0, master_key: bytes | None = None
    ) -> ReadAnswer:
        answer = super().read(bookie, ledger, entry, flags=flags, master_key=master_key)
        return await self._recorded(answer, bookie, ledger, entry, flags)

    async def read_many(self, bookie: str, ledger: int, entries: NDArray[np.int64]) -> ReadAnswers:
        answers = await super().read_many(bookie, ledger, entries)
        for entry in entries.tolist():
            error = answers.errors.get(entry)
            if error is not None or answers.run.stored(entry) is not None:
                self._say(bookie, ledger, entry, error.code if error else 0)
        return answers

    async def batch_read(self, bookie: str, ledger: int, start: int, *options: Any, **more: Any) -> StoredBatch:
        answer = super().batch_read(bookie, ledger, start, *options, **more)
        return await self._recorded(answer, bookie, ledger, start, more.get("flags", 0))

    async def _recorded(self, answer: Awaitable[T], bookie: str, ledger: int, entry: int, flags: int) -> T:
        fences = bool(flags & Flags.FENCE)
        try:
            value = await answer
        except BookKeeperError as error:
            if fences and error.code in (-13, -7):
                self._fenced.add(bookie)
            self._say(bookie, ledger, entry, error.code)
            raise
        if fences:
            self._fenced.add(bookie)
        self._say(bookie, ledger, LAST_ENTRY if fences and entry < 0 else entry, 0)
        return value

    def _say(self, bookie: str, ledger: int, entry: int, code: int) -> None:
        if self.alive and bookie in self._fenced:
            self.history.append(Event(self._loop.time(), self.who, "answered", ledger, entry, bookie, code))
