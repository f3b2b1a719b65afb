"""Named lists of ledgers in the metadata store, for asyncio. All methods run on the event loop."""

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import TypeVar

from bookie.client.aio.listing import Listing
from bookie.client.aio.scope import Scope
from bookie.client.arguments import integers
from bookie.client.bookies import MetadataStore
from bookie.client.event_loop.pages import Pages
from bookie.metadata import changing_logs
from bookie.metadata.changing_logs import Batch
from bookie.metadata.driver import Subscription, Versioned
from bookie.metadata.records.logs import Log

__all__ = ["Logs"]

T = TypeVar("T")


class Logs:
    """The logs of a cluster: named, ordered lists of ledgers. Get it from `BookKeeper.logs`.

    Every change is one compare-and-set, which is repeated when another client was faster. A name has 1 to 200 bytes
    of UTF-8 without control characters; other names raise IncorrectParameter. All calls raise MetadataStoreError if
    the metadata store fails, and ClientClosed if the client is closed.
    """

    def __init__(self, scope: Scope, store: MetadataStore) -> None:
        self._scope = scope
        self._store = store
        self._logs = store.driver.logs

    async def get(self, name: str) -> Versioned[Log]:
        """Return a log with its version.

        Args:
            name: The name of the log.

        Raises:
            NoSuchLog: There is no log with this name.
        """
        return await self._run(lambda: self._logs.read(name))

    async def create(self, name: str, ledgers: Iterable[int] = ()) -> Versioned[Log]:
        """Create a log.

        Args:
            name: The name of the log.
            ledgers: The ids of its ledgers, each at most once.

        Returns:
            The log with its version.

        Raises:
            LogExists: A log with this name already exists.
            LogTooLarge: The list does not fit into one value of the metadata store.
        """
        return await self._run(lambda: self._logs.create(name, Log(integers("ledgers", ledgers))))

    async def append(self, name: str, ledgers: Iterable[int], batch: Batch | None = None) -> Versioned[Log]:
        """Append ledgers to a log, which is created if it does not exist. Ledgers that are in the list already stay
        in place.

        Args:
            name: The name of the log.
            ledgers: The ids of the ledgers.
            batch: A writer and the number of its batch. If the log already holds this batch or a later one of the
                writer, nothing changes, and the entries in those of `ledgers` that are not in the result were written
                in vain.

        Returns:
            The log with its new version.

        Raises:
            LogTooLarge: The list does not fit into one value of the metadata store.
            MetadataVersionConflict: Other clients changed the log too often; try again.
        """
        return await self._run(lambda: changing_logs.append(self._logs, name, integers("ledgers", ledgers), batch))

    async def replace(
        self, name: str, ledgers: Iterable[int], batch: Batch | None = None
    ) -> tuple[Versioned[Log], tuple[int, ...]]:
        """Replace the list of a log, which is created if it does not exist.

        Args:
            name: The name of the log.
            ledgers: The ids of the ledgers that are the list from now on.
            batch: See `append`.

        Returns:
            The log with its new version, and the ids of the ledgers that are no longer in the list.

        Raises:
            LogTooLarge: The list does not fit into one value of the metadata store.
            MetadataVersionConflict: Other clients changed the log too often; try again.
        """
        return await self._run(lambda: changing_logs.replace_all(self._logs, name, integers("ledgers", ledgers), batch))

    async def update(self, name: str, change: Callable[[Log], Log], *, create: bool = False) -> Versioned[Log]:
        """Replace a log with the result of a function of it.

        Args:
            name: The name of the log.
            change: Returns the new log for the present one. It runs on another thread, and possibly several times.
            create: Whether to create the log if it does not exist.

        Returns:
            The log with its new version.

        Raises:
            NoSuchLog: There is no log with this name, and `create` is false.
            LogTooLarge: The list does not fit into one value of the metadata store.
            MetadataVersionConflict: Other clients changed the log too often; try again.
        """
        return await self._run(lambda: changing_logs.update(self._logs, name, change, create=create))

    async def remove(self, name: str, ledgers: Collection[int]) -> Versioned[Log]:
        """Remove ledgers from a log's list; the ledgers themselves are not deleted.

        Args:
            name: The name of the log.
            ledgers: The ids of the ledgers.

        Returns:
            The log with its new version.

        Raises:
            NoSuchLog: There is no log with this name.
        """
        return await self._run(lambda: changing_logs.remove(self._logs, name, integers("ledgers", ledgers)))

    async def touch(self, name: str) -> Versioned[Log]:
        """Give a log a new version without changing it, and create it if it does not exist.

        Changes that other clients began before cannot succeed any more without reading the log again.

        Args:
            name: The name of the log.

        Returns:
            The log with its new version.
        """
        return await self._run(lambda: changing_logs.touch(self._logs, name))

    async def forget(self, name: str, writer: str) -> Versioned[Log]:
        """Drop the mark of a writer that will not come back. If it does, a batch that it repeats is appended again.

        Args:
            name: The name of the log.
            writer: The name of the writer, as given in its batches.

        Returns:
            The log with its new version.

        Raises:
            NoSuchLog: There is no log with this name.
        """
        return await self._run(lambda: changing_logs.forget(self._logs, name, writer))

    async def delete(self, name: str, version: int | None = None) -> None:
        """Delete a log's list; its ledgers are not deleted.

        Args:
            name: The name of the log.
            version: The version that is to be deleted; None means any.

        Raises:
            NoSuchLog: There is no log with this name.
            MetadataVersionConflict: The log has another version.
        """
        await self._run(lambda: self._logs.delete(name, version))

    def names(self) -> Listing[str]:
        """Return an iterator over the names of all logs in ascending order."""
        pages: Iterator[list[str]] = self._logs.names()
        return Listing(self._scope, Pages(lambda: self._store.run(next, pages, None)))

    def watch(self, name: str, listener: Callable[[Versioned[Log] | None], None]) -> Subscription:
        """Call a listener with the log as it is now, and after each change; with None if the log does not exist.

        Args:
            name: The name of the log.
            listener: Runs on a thread of the metadata store.

        Returns:
            The subscription; close it to end the calls.
        """
        return self._logs.watch(name, listener)

    async def _run(self, call: Callable[[], T]) -> T:
        return await self._scope.run(self._store.run(call))
