"""Runs an asyncio client for the duration of a task, from the synchronous generator out of which Spark reads rows."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, contextmanager
from typing import TypeVar

from bookie.client import aio
from bookie.spark.options import Cluster

__all__ = ["AsyncTask", "task_of"]

T = TypeVar("T")


class AsyncTask:
    """Runs coroutines one after the other on one event loop. Used by one thread."""

    def __init__(self, runner: asyncio.Runner, client: aio.BookKeeper) -> None:
        self.client = client
        self._runner = runner

    def every(self, items: AsyncIterator[T]) -> Iterator[T]:
        """Yield the items of an asynchronous iterator; the event loop runs while the next one is awaited."""

        async def following() -> T:
            return await anext(items)

        async def done() -> None:
            async with aclosing(items):  # type: ignore[type-var]
                pass

        try:
            while True:
                try:
                    yield self._runner.run(following())
                except StopAsyncIteration:
                    return
        finally:
            self._runner.run(done())


@contextmanager
def task_of(cluster: Cluster) -> Iterator[AsyncTask]:
    """Open a client of the task's own, yield the task, and close the client.

    Raises:
        ConfigurationError: the settings of the client are invalid.
        MetadataStoreError: the metadata store cannot be reached.
    """
    with asyncio.Runner() as runner:
        client = aio.BookKeeper(cluster.uri, **dict(cluster.settings))
        runner.run(client.start())
        try:
            yield AsyncTask(runner, client)
        finally:
            runner.run(client.close())
