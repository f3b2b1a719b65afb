"""Named lists of ledgers in the metadata store, for threads; `bookie.client.aio.logs` does the work. Any thread."""

from collections.abc import Callable, Collection, Iterable, Iterator

from bookie.client.aio.logs import Logs as AioLogs
from bookie.client.event_loop.thread import LoopThread
from bookie.metadata.changing_logs import Batch
from bookie.metadata.driver import Subscription, Versioned
from bookie.metadata.records.logs import Log

__all__ = ["Logs"]


class Logs:
    """The logs of a cluster: named, ordered lists of ledgers. Get it from `BookKeeper.logs`.

    Every change is one compare-and-set, which is repeated when another client was faster. A name has 1 to 200 bytes
    of UTF-8 without control characters; other names raise IncorrectParameter. All calls raise MetadataStoreError if
    the metadata store fails, RequestTimeout after `timeout` seconds (`callTimeoutSec` if it is None), and ClientClosed
    if the client is closed.
    """

    def __init__(self, thread: LoopThread, logs: AioLogs) -> None:
        self._thread = thread
        self._aio = logs

    def get(self, name: str, *, timeout: float | None = None) -> Versioned[Log]:
        """Return a log with its version.

        Args:
            name: The name of the log.
            timeout: Seconds to wait at most; None means `callTimeoutSec`.

        Raises:
            NoSuchLog: There is no log with this name.
        """
        return self._thread.run(self._aio.get(name), timeout)

    def create(self, name: str, ledgers: Iterable[int] = (), *, timeout: float | None = None) -> Versioned[Log]:
        """Create a log.

        Args:
            name: The name of the log.
            ledgers: The ids of its ledgers, each at most once.
            timeout: Seconds to wait at most; None means `callTimeoutSec`.

        Returns:
            The log with its version.

        Raises:
            LogExists: A log with this name already exists.
            LogTooLarge: The list does not fit into one value of the metadata store.
        """
        return self._thread.run(self._aio.create(name, ledgers), timeout)

    def append(
        self, name: str, ledgers: Iterable[int], batch: Batch | None = None, *, timeout: float | None = None
    ) -> Versioned[Log]:
        """Append ledgers to a log, which is created if it does not exist. Ledgers that are in the list already stay
        in place.

        Args:
            name: The name of the log.
            ledgers: The ids of the ledgers.
            batch: A writer and the number of its batch. If the log already holds this batch or a later one of the
                writer, nothing changes, and the entries in those of `ledgers` that are not in the result were written
                in vain.
            timeout: Seconds to wait at most; None means `callTimeoutSec`.

        Returns:
            The log with its new version.

        Raises:
            LogTooLarge: The list does not fit into one value of the metadata store.
            MetadataVersionConflict: Other clients changed the log too often; try again.
        """
        return self._thread.run(self._aio.append(name, ledgers, batch), timeout)

    def replace(
        self, name: str, ledgers: Iterable[int], batch: Batch | None = None, *, timeout: float | None = None
    ) -> tuple[Versioned[Log], tuple[int, ...]]:
        """Replace the list of a log, which is created if it does not exist.

        Args:
            name: The name of the log.
            ledgers: The ids of the ledgers that are the list from now on.
            batch: See `append`.
            timeout: Seconds to wait at most; None means `callTimeoutSec`.

        Returns:
            The log with its new version, and the ids of the ledgers that are no longer in the list.

        Raises:
            LogTooLarge: The list does not fit into one value of the metadata store.
            MetadataVersionConflict: Other clients changed the log too often; try again.
        """
        return self._thread.run(self._aio.replace(name, ledgers, batch), timeout)

    def update(
        self, name: str, change: Callable[[Log], Log], *, create: bool = False, timeout: float | None = None
    ) -> Versioned[Log]:
        """Replace a log with the result of a function of it.

        Args:
            name: The name of the log.
            change: Returns the new log for the present one. It runs on another thread, and possibly several times.
            create: Whether to create the log if it does not exist.
            timeout: Seconds to wait at most; None means `callTimeoutSec`.

        Returns:
            The log with its new version.

        Raises:
            NoSuchLog: There is no log with this name, and `create` is false.
            LogTooLarge: The list does not fit into one value of the metadata store.
            MetadataVersionConflict: Other clients changed the log too often; try again.
        """
        return self._thread.run(self._aio.update(name, change, create=create), timeout)

    def remove(self, name: str, ledgers: Collection[int], *, timeout: float | None = None) -> Versioned[Log]:
        """Remove ledgers from a log's list; the ledgers themselves are not deleted.

        Args:
            name: The name of the log.
            ledgers: The ids of the ledgers.
            timeout: Seconds to wait at most; None means `callTimeoutSec`.

        Returns:
            The log with its new version.

        Raises:
            NoSuchLog: There is no log with this name.
        """
        return self._thread.run(self._aio.remove(name, ledgers), timeout)

    def touch(self, name: str, *, timeout: float | None = None) -> Versioned[Log]:
        """Give a log a new version without changing it, and create it if it does not exist.

        Changes that other clients began before cannot succeed any more without reading the log again.

        Args:
            name: The name of the log.
            timeout: Seconds to wait at most; None means `callTimeoutSec`.

        Returns:
            The log with its new version.
        """
        return self._thread.run(self._aio.touch(name), timeout)

    def forget(self, name: str, writer: str, *, timeout: float | None = None) -> Versioned[Log]:
        """Drop the mark of a writer that will not come back. If it does, a batch that it repeats is appended again.

        Args:
            name: The name of the log.
            writer: The name of the writer, as given in its batches.
            timeout: Seconds to wait at most; None means `callTimeoutSec`.

        Returns:
            The log with its new version.

        Raises:
            NoSuchLog: There is no log with this name.
        """
        return self._thread.run(self._aio.forget(name, writer), timeout)

    def delete(self, name: str, version: int | None = None, *, timeout: float | None = None) -> None:
        """Delete a log's list; its ledgers are not deleted.

        Args:
            name: The name of the log.
            version: The version that is to be deleted; None means any.
            timeout: Seconds to wait at most; None means `callTimeoutSec`.

        Raises:
            NoSuchLog: There is no log with this name.
            MetadataVersionConflict: The log has another version.
        """
        self._thread.run(self._aio.delete(name, version), timeout)

    def names(self) -> Iterator[str]:
        """Yield the names of all logs in ascending order."""
        listed = self._aio.names()
        while page := self._thread.run(listed.page()):
            yield from page

    def watch(self, name: str, listener: Callable[[Versioned[Log] | None], None]) -> Subscription:
        """Call a listener with the log as it is now, and after each change; with None if the log does not exist.

        Args:
            name: The name of the log.
            listener: Runs on a thread of the metadata store.

        Returns:
            The subscription; close it to end the calls.
        """
        return self._aio.watch(name, listener)
