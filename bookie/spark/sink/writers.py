"""The writers that Spark calls: `write` in the processes of its tasks, `commit` and `abort` in one of the driver."""

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pyspark import TaskContext
from pyspark.sql import datasource
from pyspark.sql.datasource import DataSourceArrowWriter

from bookie.errors import ConfigurationError
from bookie.spark.clients import client_of
from bookie.spark.sink.commit import abort, commit
from bookie.spark.sink.labels import Labels
from bookie.spark.sink.results import Result
from bookie.spark.sink.settings import Settings, settings_of
from bookie.spark.sink.task import Attempt, stale_at_ms

__all__ = ["batch_writer", "stream_writer"]

StreamArrowWriter: Any = getattr(datasource, "DataSourceStreamArrowWriter", object)
"""The base class of Spark 4.1 and later. With Spark 4.0 this module can be imported, and writing a stream is
refused.
"""


class BatchWriter(DataSourceArrowWriter):
    """The writer of a batch job. Spark pickles it into the tasks and into the process that commits."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._began_ms = time.time_ns() // 1_000_000

    def write(self, iterator: Iterator[Any]) -> Result:
        """Write all rows of a partition, in a task attempt."""
        return written(self._settings, iterator)

    def commit(self, messages: list[Any]) -> None:
        """Commit the results of all tasks."""
        commit(client_of(self._settings.cluster), self._settings, _results(messages))

    def abort(self, messages: list[Any]) -> None:
        """Delete what was written, after a task or the commit failed."""
        abort(client_of(self._settings.cluster), self._settings, _results(messages), self._began_ms)


class StreamWriter(StreamArrowWriter):
    """The writer of a stream's batch. Spark uses one instance to write and another one to commit."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def write(self, iterator: Iterator[Any]) -> Result:
        """Write all rows of a partition of the batch, in a task attempt."""
        return written(self._settings, iterator)

    def commit(self, messages: list[Any], batchId: int) -> None:  # noqa: N803  # Spark's name
        """Commit the results of all tasks of the batch."""
        commit(client_of(self._settings.cluster), self._settings, _results(messages), batchId)

    def abort(self, messages: list[Any], batchId: int) -> None:  # noqa: ARG002, N803  # Spark's name
        """Delete what was written, after a task of the batch or its commit failed."""
        abort(client_of(self._settings.cluster), self._settings, _results(messages), None)


def batch_writer(options: Mapping[str, str], schema: Any, *, overwrite: bool) -> BatchWriter:
    """Return the writer of a batch job.

    Raises:
        ConfigurationError: an option or the columns are invalid.
    """
    return BatchWriter(settings_of(options, schema, overwrite=overwrite))


def stream_writer(options: Mapping[str, str], schema: Any, *, overwrite: bool) -> Any:
    """Return the writer of a stream.

    Raises:
        ConfigurationError: an option or the columns are invalid, or Spark is too old.
    """
    if StreamArrowWriter is object:
        raise ConfigurationError("a stream into format bookkeeper needs pyspark >= 4.1: pip install 'bookie[spark]'")
    return StreamWriter(settings_of(options, schema, overwrite=overwrite))


def written(settings: Settings, batches: Iterable[Any]) -> Result:
    """Write all rows in a task attempt and return the result; if that fails, delete what was written."""
    context = TaskContext.get()
    if context is None:
        raise ConfigurationError("format bookkeeper can only write inside a Spark task")
    query = context.getLocalProperty("sql.streaming.queryId") or ""
    batch = int(context.getLocalProperty("streaming.sql.batchId") or 0) if query else 0
    labels = Labels(
        job=settings.job,
        query=query,
        batch=batch,
        partition=context.partitionId(),
        attempt=context.attemptNumber(),
        log=settings.log,
        stale_at_ms=stale_at_ms(settings),
    )
    attempt = Attempt(client_of(settings.cluster), settings, labels)
    try:
        attempt.write(batches)
        ledgers = attempt.finish()
    except BaseException:
        attempt.give_up()
        raise
    return Result(settings.job, query, batch, labels.partition, labels.stale_at_ms, ledgers)


def _results(messages: Iterable[Any]) -> list[Result]:
    return [message for message in messages if isinstance(message, Result)]
