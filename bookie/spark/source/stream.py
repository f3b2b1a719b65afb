"""The reader of a stream: asked by Spark's driver before each batch how far that goes. One process, one thread.

Reads up to the LAC only, below which nothing ever changes: a batch that is repeated brings the same entries.
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
"""The ledgers in their order, and how far those go that are not finished."""


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The settings' limits hold where Spark wants limits at all."""

    def __init__(self, settings: SourceSettings) -> None:
        refuse_what_streams_cannot(settings)
        self._settings = settings
        self._ledgers = Ledgers(settings)
        self._target: State | None = None
        self._entry_bytes: dict[int, float] = {}
        self._batch_at: float | None = None
        self._newest: Offset | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  # Spark's name
        """Where a stream without a checkpoint begins."""
        settings = self._settings
        if settings.starting == "earliest":
            return Offset().plain()
        order, ends = self._state(NONE_DONE)
        if settings.starting == "json":
            at = settings.starting_at
            if unknown := [ledger for ledger in at if ledger not in order]:
                raise ConfigurationError(
                    f"option startingOffsets of format bookkeeper: ledger {unknown[0]} is not among {settings.source}"
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
        """Spark takes one kind of limit; where there are several, `latestOffset` knows them all."""
        settings = self._settings
        if settings.trigger_offsets_max is not None:
            return ReadMaxRows(settings.trigger_offsets_max)
        if settings.trigger_bytes_max is not None:
            return ReadMaxBytes(settings.trigger_bytes_max)
        if settings.trigger_offsets_min is not None:
            return ReadMinRows(settings.trigger_offsets_min)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802  # Spark's name
        """What there is now is all that this run reads."""
        self._target = self._state(NONE_DONE)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802  # Spark's name
        """How far the next batch goes; `start` for none."""
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
        """All that there was when it was last looked, for the query's progress."""
        return None if self._newest is None else self._newest.plain()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """The parts of a batch: from its offsets alone, so the same when it is repeated."""
        ranges = between(Offset.parse(start), Offset.parse(end), self._entry_bytes)
        packed = pack(ranges, self._settings.partition_bytes_max, self._settings.partitions_min)
        return [InputPartition(group) for group in packed]

    def read(self, partition: InputPartition) -> Iterator["pa.RecordBatch"]:
        """In a task: Arrow record batches."""
        return read_ranges(self._settings, partition.value or ())

    def commit(self, end: dict[str, Any]) -> None:
        """Nothing is kept for a batch."""

    def stop(self) -> None:
        """The client ends with the process."""

    def _state(self, done: int) -> State:
        """As things are now: what comes behind `done`."""
        order = self._ledgers.ids()
        live = behind(order, done)
        ends = self._ledgers.ends(live)
        self._entry_bytes = {one: end.length / max(end.end, 1) for one, end in ends.items()}
        return order, ends

    def _check_gone(self, begin: Offset, order: list[int], ends: dict[int, LedgerEnd]) -> None:
        """A ledger that was not read to its end and is there no more."""
        for ledger, entry in begin.next.items():
            if ledger in ends:
                continue
            if ledger not in order and self._settings.log and entry:
                continue  # taken out of the log, as old ledgers are
            gone = NoSuchLedgerMetadata(f"it was read up to entry {entry - 1}")
            lost(self._settings, f"ledger {ledger} of {self._settings.source} is gone", gone)

    def _too_few(self, begin: Offset, end: Offset) -> bool:
        """Whether to wait for more (`minOffsetsPerTrigger`), which is not for ever (`maxTriggerDelay`)."""
        least = self._settings.trigger_offsets_min
        if least is None or self._batch_at is None:
            return False
        waiting = sum(entry - begin.next.get(ledger, 0) for ledger, entry in end.next.items())
        return waiting < least and time.monotonic() - self._batch_at < self._settings.trigger_delay_max_s


def refuse_what_streams_cannot(settings: SourceSettings) -> None:
    """ConfigurationError: an option that is for queries only."""
    wrong = {
        "openMode=recovery": settings.recovery,
        "endingOffsets": bool(settings.ending_at),
        "readMode=unconfirmed": not settings.confirmed,
    }
    for option, given in wrong.items():
        if given:
            raise ConfigurationError(
                f"option {option} of format bookkeeper: not for streams, which read confirmed entries and go on;"
                " leave it out"
            )
