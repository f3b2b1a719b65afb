"""The reader of a stream. Before each batch, Spark's driver asks it how far the batch goes. One process, one thread.

A stream reads only up to the LAC. Nothing changes below it, so a repeated batch returns the same entries.
"""

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from bookie.errors import ConfigurationError, NoSuchLedgerMetadata
from bookie.spark.source.ledgers import LedgerEnd, Ledgers, lost
from bookie.spark.source.offsets import NONE_DONE, Offset, advance, behind, between
from bookie.spark.source.ranges import pack
from bookie.spark.source.reading import read_ranges
from bookie.spark.source.settings import EARLIEST, LATEST, SourceSettings

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["StreamReader"]

State = tuple[list[int], dict[int, LedgerEnd]]
"""The ledgers in their order, and the ends of those that are not finished."""


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads the ledgers as a stream. The limits of the options apply to triggers for which Spark asks for limits.

    Raises:
        ConfigurationError: an option is given that does not apply to streams.
    """

    def __init__(self, settings: SourceSettings) -> None:
        refuse_what_streams_cannot(settings)
        self._settings = settings
        self._ledgers = Ledgers(settings)
        self._target: State | None = None
        self._entry_bytes: dict[int, float] = {}
        self._batch_at: float | None = None
        self._newest: Offset | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  # Spark's name
        """Return the position at which a stream without a checkpoint begins."""
        settings = self._settings
        if settings.starting == "earliest":
            return Offset().plain()
        order, ends = self._state(NONE_DONE)
        if settings.starting == "json":
            at = settings.starting_at
            if unknown := [ledger for ledger in at if ledger not in order]:
                raise ConfigurationError(
                    f"option startingOffsets of format bookkeeper: ledger {unknown[0]} is not in {settings.source}"
                )
            places = {one: {EARLIEST: 0, LATEST: ends[one].end}.get(at[one], at[one]) for one in at if one in ends}
            return Offset(NONE_DONE, places).plain()
        done = NONE_DONE
        for ledger in order:
            if ledger not in ends or not ends[ledger].closed:
                break
            done = ledger
        return Offset(done, {ledger: ends[ledger].end for ledger in behind(order, done) if ledger in ends}).plain()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802  # Spark's name
        """Return a limit for Spark, which accepts only one kind. `latestOffset` applies all limits of the options."""
        settings = self._settings
        if settings.trigger_offsets_max is not None:
            return ReadMaxRows(settings.trigger_offsets_max)
        if settings.trigger_bytes_max is not None:
            return ReadMaxBytes(settings.trigger_bytes_max)
        if settings.trigger_offsets_min is not None:
            return ReadMinRows(settings.trigger_offsets_min)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802  # Spark's name
        """Fix the present ends of the ledgers as the end of this run."""
        self._target = self._state(NONE_DONE)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802  # Spark's name
        """Return the end of the next batch; `start` if there is no batch to read yet."""
        settings, begin = self._settings, Offset.parse(start)
        order, ends = self._target or self._state(begin.done)
        self._check_gone(begin, order, ends)
        self._newest = all_there_is = advance(begin, order, ends)
        if isinstance(limit, ReadAllAvailable):
            return all_there_is.plain()
        if self._target is None and self._too_few(begin, all_there_is):
            return start
        end = advance(begin, order, ends, settings.trigger_offsets_max, settings.trigger_bytes_max)
        if end is begin:
            return start
        self._batch_at = time.monotonic()
        return end.plain()

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802  # Spark's name
        """Return the end of all data when it was last determined, for the progress of the query."""
        return None if self._newest is None else self._newest.plain()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """Return the partitions of a batch. They follow from its offsets alone, so they are the same if it is
        repeated.
        """
        ranges = between(Offset.parse(start), Offset.parse(end), self._entry_bytes)
        packed = pack(ranges, self._settings.partition_bytes_max, self._settings.partitions_min)
        return [InputPartition(group) for group in packed]

    def read(self, partition: InputPartition) -> Iterator["pa.RecordBatch"]:
        """Yield the entries of a partition as Arrow record batches. Runs in a task."""
        return read_ranges(self._settings, partition.value or ())

    def commit(self, end: dict[str, Any]) -> None:
        """Do nothing: no state is kept for a batch."""

    def stop(self) -> None:
        """Do nothing: the client is closed when the process exits."""

    def _state(self, done: int) -> State:
        """Return the ledgers and the current ends of those after `done`."""
        order = self._ledgers.ids()
        live = behind(order, done)
        ends = self._ledgers.ends(live)
        self._entry_bytes = {one: end.length / max(end.end, 1) for one, end in ends.items()}
        return order, ends

    def _check_gone(self, begin: Offset, order: list[int], ends: dict[int, LedgerEnd]) -> None:
        """Report each ledger that was not read to its end and no longer exists."""
        for ledger, entry in begin.next.items():
            if ledger in ends:
                continue
            if ledger not in order and self._settings.log and entry:
                continue  # old ledgers are trimmed from a log regularly
            gone = NoSuchLedgerMetadata(f"it was read up to entry {entry - 1}")
            lost(self._settings, f"ledger {ledger} of {self._settings.source} no longer exists", gone)

    def _too_few(self, begin: Offset, end: Offset) -> bool:
        """Return whether to wait for more entries (`minOffsetsPerTrigger`), at most `maxTriggerDelay`."""
        least = self._settings.trigger_offsets_min
        if least is None or self._batch_at is None:
            return False
        waiting = sum(entry - begin.next.get(ledger, 0) for ledger, entry in end.next.items())
        return waiting < least and time.monotonic() - self._batch_at < self._settings.trigger_delay_max_s


def refuse_what_streams_cannot(settings: SourceSettings) -> None:
    """Raise ConfigurationError if an option is given that applies to batch queries only."""
    wrong = {
        "openMode=recovery": settings.recovery,
        "endingOffsets": bool(settings.ending_at),
        "readMode=unconfirmed": not settings.confirmed,
    }
    for option, given in wrong.items():
        if given:
            raise ConfigurationError(
                f"option {option} of format bookkeeper: does not apply to streams, which read confirmed entries without"
                " end; leave it out"
            )
