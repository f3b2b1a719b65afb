"""The reader of a batch query. It is planned in a process of the driver, from the ledgers as they are then; tasks
read.
"""

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
    """Reads the ledgers up to their LAC, or the part that the options select."""

    def __init__(self, settings: SourceSettings) -> None:
        self._settings = settings
        self._bounds = Bounds()

    def partitions(self) -> list[InputPartition]:
        """Return partitions of about `maxPartitionBytes` each.

        Raises:
            ConfigurationError: `startingOffsets` lies beyond the end of a ledger.
            NoSuchLedgerMetadata: a ledger was deleted, and `failOnDataLoss` is true.
        """
        settings = self._settings
        ledgers = Ledgers(settings)
        ends = ledgers.ends(ledgers.ids())
        ranges = [self._bounds.of(self._range(end)) for end in ends.values()]
        packed = pack(ranges, settings.partition_bytes_max, settings.partitions_min)
        return [InputPartition(group) for group in packed]

    def read(self, partition: InputPartition) -> Iterator["pa.RecordBatch"]:
        """Yield the entries of a partition as Arrow record batches."""
        return read_ranges(self._settings, partition.value or ())

    def _range(self, known: LedgerEnd) -> Range:
        settings = self._settings
        first = settings.starting_at.get(known.ledger, EARLIEST)
        end = settings.ending_at.get(known.ledger, LATEST)
        first = {EARLIEST: 0, LATEST: known.end}.get(first, first)
        upto = known.end if end == LATEST else 0 if end == EARLIEST else min(end, known.end)
        if first > known.end:
            raise Options("bookkeeper", {"startingOffsets": str(first)}).wrong(
                "startingOffsets", f"is beyond the end of ledger {known.ledger}, whose next entry is {known.end}"
            )
        upto = max(first, upto)
        open_end = not (settings.confirmed or known.closed or known.ledger in settings.ending_at)
        return Range(known.ledger, first, upto, known.length * (upto - first) // max(known.end, 1), open_end)


class FilteringReader(BatchReader):
    """The reader with the option `pushdown`. Spark accepts a reader with this method only if its own setting for it is
    on.
    """

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802  # Spark's name
        """Apply comparisons of ledger ids and entry ids; return the other filters, which Spark applies."""
        self._bounds, left = self._bounds.with_filters(filters)
        return left
