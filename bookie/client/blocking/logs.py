"""Logs of a cluster, for threads: `bookie.client.aio.logs` on the client's event loop. Any thread."""

from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator

from bookie.client.aio.logs import Logs as AioLogs
from bookie.client.event_loop.thread import LoopThread
from bookie.metadata.changing_logs import Batch
from bookie.metadata.driver import Subscription, Versioned
from bookie.metadata.records.logs import Log

__all__ = ["Logs"]


class Logs:
    """Made by a `BookKeeper`; what each call does stands there."""

    def __init__(self, thread: LoopThread, logs: AioLogs) -> None:
        self._thread = thread
        self._aio = logs

    def get(self, name: str) -> Versioned[Log]:
        """NoSuchLog."""
        return self._thread.run(self._aio.get(name))

    def create(self, name: str, ledgers: Iterable[int] = ()) -> Versioned[Log]:
        """LogExists."""
        return self._thread.run(self._aio.create(name, ledgers))

    def append(self, name: str, ledgers: Iterable[int], batch: Batch | None = None) -> Versioned[Log]:
        """Put `ledgers` at the end, once for each batch; those that are not in the result were written for nothing."""
        return self._thread.run(self._aio.append(name, ledgers, batch))

    def replace(
        self, name: str, ledgers: Iterable[int], batch: Batch | None = None
    ) -> tuple[Versioned[Log], tuple[int, ...]]:
        """Let `ledgers` be the list; also which ledgers that took out of it."""
        return self._thread.run(self._aio.replace(name, ledgers, batch))

    def update(self, name: str, change: Callable[[Log], Log], *, create: bool = False) -> Versioned[Log]:
        """Write what `change` makes of the log. NoSuchLog."""
        return self._thread.run(self._aio.update(name, change, create=create))

    def remove(self, name: str, ledgers: Collection[int]) -> Versioned[Log]:
        """Take `ledgers` out of the list; they stay where they are. NoSuchLog."""
        return self._thread.run(self._aio.remove(name, ledgers))

    def touch(self, name: str) -> Versioned[Log]:
        """The log as it is, at a new version: no change that was under way before succeeds any more."""
        return self._thread.run(self._aio.touch(name))

    def forget(self, name: str, writer: str) -> Versioned[Log]:
        """Drop the mark of a writer that will not come back. NoSuchLog."""
        return self._thread.run(self._aio.forget(name, writer))

    def delete(self, name: str, version: int | None = None) -> None:
        """The list, not its ledgers. NoSuchLog, MetadataVersionConflict."""
        self._thread.run(self._aio.delete(name, version))

    def names(self) -> Iterator[str]:
        """All names, ascending."""
        pages = self._aio.pages()
        while page := self._thread.run(_following(anext(pages, []))):
            yield from page

    def watch(self, name: str, listener: Callable[[Versioned[Log] | None], None]) -> Subscription:
        """Tell `listener` what the log is now and after each change; None: gone."""
        return self._aio.watch(name, listener)


async def _following(page: Awaitable[list[str]]) -> list[str]:
    return await page
