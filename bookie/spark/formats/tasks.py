"""A client on asyncio for as long as a task runs, called from the generator that Spark reads rows from. A task."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, contextmanager
from typing import TypeVar

from bookie.client import aio
from bookie.spark.options import Cluster

__all__ = ["AsyncTask", "task_of"]

T = TypeVar("T")


class AsyncTask:
    """Runs coroutines one after the other on one loop. One thread."""

    def __init__(self, runner: asyncio.Runner, client: aio.BookKeeper) -> None:
        self.client = client
        self._runner = runner

    def every(self, items: AsyncIterator[T]) -> Iterator[T]:
        """Its items; the loop turns while the next one is waited for."""

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
    """With a client of its own, which it closes. MetadataStoreError, ConfigurationError."""
    with asyncio.Runner() as runner:
        client = aio.BookKeeper(cluster.uri, **dict(cluster.settings))
        runner.run(client.start())
        try:
            yield AsyncTask(runner, client)
        finally:
            runner.run(client.close())
