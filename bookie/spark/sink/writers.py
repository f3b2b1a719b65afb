"""What Spark calls: `write` in the processes of its tasks, `commit` and `abort` in one of the driver's."""

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
"""Spark 4.0 has none: there the module loads, and a stream is refused."""


class BatchWriter(DataSourceArrowWriter):
    """One for each job; Spark pickles it into the tasks and to whoever commits."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._began_ms = time.time_ns() // 1_000_000

    def write(self, iterator: Iterator[Any]) -> Result:
        """All rows of a partition, in an attempt of a task."""
        return written(self._settings, iterator)

    def commit(self, messages: list[Any]) -> None:
        """After all tasks."""
        commit(client_of(self._settings.cluster), self._settings, _results(messages))

    def abort(self, messages: list[Any]) -> None:
        """After a task, or the commit, failed."""
        abort(client_of(self._settings.cluster), self._settings, _results(messages), self._began_ms)


class StreamWriter(StreamArrowWriter):
    """One for each batch where it is written, and another one where it is committed."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def write(self, iterator: Iterator[Any]) -> Result:
        """All rows of a partition of a batch, in an attempt of a task."""
        return written(self._settings, iterator)

    def commit(self, messages: list[Any], batchId: int) -> None:  # noqa: N803  # Spark's name
        """After all tasks of a batch."""
        commit(client_of(self._settings.cluster), self._settings, _results(messages), batchId)

    def abort(self, messages: list[Any], batchId: int) -> None:  # noqa: ARG002, N803  # Spark's name
        """After a task of a batch, or its commit, failed."""
        abort(client_of(self._settings.cluster), self._settings, _results(messages), None)


def batch_writer(options: Mapping[str, str], schema: Any, *, overwrite: bool) -> BatchWriter:
    """ConfigurationError."""
    return BatchWriter(settings_of(options, schema, overwrite=overwrite))


def stream_writer(options: Mapping[str, str], schema: Any, *, overwrite: bool) -> Any:
    """ConfigurationError."""
    if StreamArrowWriter is object:
        raise ConfigurationError("a stream into format bookkeeper needs pyspark >= 4.1: pip install 'bookie[spark]'")
    return StreamWriter(settings_of(options, schema, overwrite=overwrite))


def written(settings: Settings, batches: Iterable[Any]) -> Result:
    """What an attempt of a task does: write all rows, or leave nothing."""
    context = TaskContext.get()
    if context is None:
        raise ConfigurationError("format bookkeeper writes in a task of Spark's only")
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
