"""Logs of a cluster, on asyncio: named lists of ledgers in the metadata store. Event loop."""

from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator
from typing import TypeVar

from bookie.client.aio.scope import Scope
from bookie.client.bookies import MetadataStore
from bookie.metadata import changing_logs
from bookie.metadata.changing_logs import Batch
from bookie.metadata.driver import Subscription, Versioned
from bookie.metadata.records.logs import Log

__all__ = ["Logs"]

T = TypeVar("T")


class Logs:
    """Made by a `BookKeeper`. Names: IncorrectParameter for one that `bookie.metadata.records.logs.check_name` refuses.

    Every change is one compare-and-set, repeated until it is done. All calls: MetadataStoreError, ClientClosed.
    """

    def __init__(self, scope: Scope, store: MetadataStore) -> None:
        self._scope = scope
        self._store = store
        self._logs = store.driver.logs

    async def get(self, name: str) -> Versioned[Log]:
        """NoSuchLog."""
        return await self._run(lambda: self._logs.read(name))

    async def create(self, name: str, ledgers: Iterable[int] = ()) -> Versioned[Log]:
        """LogExists."""
        return await self._run(lambda: self._logs.create(name, Log(tuple(ledgers))))

    async def append(self, name: str, ledgers: Iterable[int], batch: Batch | None = None) -> Versioned[Log]:
        """Put `ledgers` at the end of the list; the log is made if there is none. `batch`: a writer and its number.

        With a batch that the log holds already, or one behind it, nothing changes: those of `ledgers` that are not in
        the result were written for nothing. LogTooLarge, MetadataVersionConflict.
        """
        return await self._run(lambda: changing_logs.append(self._logs, name, ledgers, batch))

    async def replace(
        self, name: str, ledgers: Iterable[int], batch: Batch | None = None
    ) -> tuple[Versioned[Log], tuple[int, ...]]:
        """Let `ledgers` be the list; also which ledgers that took out of it. Otherwise as `append`."""
        return await self._run(lambda: changing_logs.replace_all(self._logs, name, ledgers, batch))

    async def update(self, name: str, change: Callable[[Log], Log], *, create: bool = False) -> Versioned[Log]:
        """Write what `change` makes of the log; it runs in another thread, and may run again. NoSuchLog."""
        return await self._run(lambda: changing_logs.update(self._logs, name, change, create=create))

    async def remove(self, name: str, ledgers: Collection[int]) -> Versioned[Log]:
        """Take `ledgers` out of the list; they stay where they are. NoSuchLog."""
        return await self._run(lambda: changing_logs.remove(self._logs, name, ledgers))

    async def touch(self, name: str) -> Versioned[Log]:
        """The log as it is, at a new version: no change that was under way before succeeds any more."""
        return await self._run(lambda: changing_logs.touch(self._logs, name))

    async def forget(self, name: str, writer: str) -> Versioned[Log]:
        """Drop the mark of a writer that will not come back. NoSuchLog."""
        return await self._run(lambda: changing_logs.forget(self._logs, name, writer))

    async def delete(self, name: str, version: int | None = None) -> None:
        """The list, not its ledgers; None means any version. NoSuchLog, MetadataVersionConflict."""
        await self._run(lambda: self._logs.delete(name, version))

    async def names(self) -> AsyncIterator[str]:
        """All names, ascending."""
        async for page in self.pages():
            for name in page:
                yield name

    async def pages(self) -> AsyncIterator[list[str]]:
        """All names, ascending, in pieces, as the metadata store tells them."""
        pages: Iterator[list[str]] = self._logs.names()
        while page := await self._run(lambda: next(pages, [])):
            yield page

    def watch(self, name: str, listener: Callable[[Versioned[Log] | None], None]) -> Subscription:
        """Tell `listener`, on a thread of the metadata store, what the log is now and after each change; None: gone."""
        return self._logs.watch(name, listener)

    async def _run(self, call: Callable[[], T]) -> T:
        return await self._scope.run(self._store.run(call))
