"""The reader of a query: ledgers as they are when it is planned, in a process of the driver's; tasks read."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition

from bookie.spark.options import Options
from bookie.spark.source.bounds import Bounds
from bookie.spark.source.ledgers import LedgerEnd, Ledgers
from bookie.spark.source.ranges import Range, pack
from bookie.spark.source.reading import read_ranges
from bookie.spark.source.settings import EARLIEST, LATEST, SourceSettings

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["BatchReader", "FilteringReader"]


class BatchReader(DataSourceReader):
    """Reads every ledger up to its LAC, or part of it."""

    def __init__(self, settings: SourceSettings) -> None:
        self._settings = settings
        self._bounds = Bounds()

    def partitions(self) -> list[InputPartition]:
        """Parts of ledgers of about `maxPartitionBytes` each."""
        settings = self._settings
        ledgers = Ledgers(settings)
        ends = ledgers.ends(ledgers.ids())
        ranges = [self._bounds.of(self._range(end)) for end in ends.values()]
        packed = pack(ranges, settings.partition_bytes_max, settings.partitions_min)
        return [InputPartition(group) for group in packed]

    def read(self, partition: InputPartition) -> Iterator["pa.RecordBatch"]:
        """Arrow record batches; none where there was nothing to plan."""
        return read_ranges(self._settings, partition.value or ())

    def _range(self, known: LedgerEnd) -> Range:
        settings = self._settings
        first = settings.starting_at.get(known.ledger, EARLIEST)
        end = settings.ending_at.get(known.ledger, LATEST)
        first = {EARLIEST: 0, LATEST: known.end}.get(first, first)
        upto = known.end if end == LATEST else 0 if end == EARLIEST else min(end, known.end)
        if first > known.end:
            raise Options("bookkeeper", {"startingOffsets": str(first)}).wrong(
                "startingOffsets", f"is behind the end of ledger {known.ledger}, whose next entry is {known.end}"
            )
        upto = max(first, upto)
        open_end = not (settings.confirmed or known.closed or known.ledger in settings.ending_at)
        return Range(known.ledger, first, upto, known.length * (upto - first) // max(known.end, 1), open_end)


class FilteringReader(BatchReader):
    """With option `pushdown`: Spark accepts this method only where its own switch for it is on."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802  # Spark's name
        """Take comparisons of ledger and entry ids; the others go back."""
        self._bounds, left = self._bounds.with_filters(filters)
        return left
