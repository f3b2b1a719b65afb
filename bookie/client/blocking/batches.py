"""An iterator over consecutive batches, for threads. One thread uses it at a time."""

from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from types import TracebackType
from typing import Any, Protocol, Self

from bookie._fast.client.payload_block import PayloadBlock
from bookie.client.aio.reading import Batches as AioBatches
from bookie.client.entries.verified import EntryBatch
from bookie.client.event_loop.thread import LoopThread

__all__ = ["Batches", "LoopSource", "Source"]


class Source(Protocol):
    """A source of batches."""

    def fill(self, ready: Callable[[EntryBatch], None], timeout: float | None) -> None:
        """Wait for the next batches, and hand each of them to `ready`; none if there are no more.

        A call that raises RequestTimeout, or is interrupted, leaves what it has not handed over to the next call.
        """

    def receive_into(self, block: PayloadBlock) -> None:
        """Receive batches in the memory of a block, if that is possible."""

    def close(self) -> None:
        """Stop reading ahead. Further calls do nothing."""


class LoopSource:
    """The batches that the event loop reads."""

    def __init__(self, thread: LoopThread, batches: AioBatches) -> None:
        self._thread = thread
        self._batches = batches

    def fill(self, ready: Callable[[EntryBatch], None], timeout: float | None) -> None:
        """Wait for the next batches."""
        self._thread.run(self._fetch(ready), timeout)

    async def _fetch(self, ready: Callable[[EntryBatch], None]) -> None:
        """Hand over on the event loop what has arrived, so that it is kept if the thread does not wait any longer."""
        for batch in await self._batches.ready():
            ready(batch)

    def receive_into(self, block: PayloadBlock) -> None:
        """Do nothing: the event loop receives in memory of its own."""

    def close(self) -> None:
        """Stop reading ahead."""
        call: Coroutine[Any, Any, None] = self._batches.aclose()
        if self._thread.alive:
            self._thread.run(call)
        else:
            call.close()


class Batches(Iterator[EntryBatch]):
    """An iterator over consecutive batches of entries, which are read ahead.

    It is a context manager; use it as one, or call `close`, to leave the iteration before its end.
    """

    def __init__(self, source: Source, *, timeout: float | None = None) -> None:
        self._source = source
        self._timeout = timeout
        self._ready: deque[EntryBatch] = deque()

    def __next__(self) -> EntryBatch:
        if (batch := self.next(self._timeout)) is None:
            raise StopIteration
        return batch

    def next(self, timeout: float | None = None) -> EntryBatch | None:
        """Wait for the next batch. A call that takes too long, or is interrupted, leaves it to the next call.

        Args:
            timeout: Seconds to wait at most; None means `callTimeoutSec`, and `math.inf` no limit.

        Returns:
            The next batch, or None if there are no more.

        Raises:
            RequestTimeout: No batch has arrived within `timeout`; call it again.
        """
        ready = self._ready
        if not ready:
            self._source.fill(ready.append, timeout)
        return ready.popleft() if ready else None

    def receive_into(self, block: PayloadBlock) -> None:
        """Receive batches where their payloads will be in a block, for callers that add each of them at once.

        Each batch must be added to the block before the next one is asked for, and cannot be used afterwards, except
        for its ids and its size.

        Args:
            block: The block.
        """
        self._source.receive_into(block)

    def close(self) -> None:
        """Stop reading ahead. Further calls do nothing."""
        self._ready.clear()
        self._source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
