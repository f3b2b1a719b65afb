"""Format `bookkeeper-entrylog`: the records of entry logs, read from files. Runs on the driver and in tasks."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource

from bookie.spark.formats.files import find_files, finished, packed
from bookie.spark.formats.partitions import FilesReader
from bookie.spark.formats.scanning import Plan, log_batches
from bookie.spark.options import Options, within
from bookie.spark.schemas import ENTRYLOG

if TYPE_CHECKING:
    import pyarrow as pa

    from bookie.spark.formats.files import DataFile

__all__ = ["EntryLog"]


class EntryLog(DataSource):
    """The data source. Each task opens its files read-only, so the machine that runs it must have them under the same
    paths.

    Options: `path`, `logIds`, `includeActive`, `maxPartitionBytes`, and those of a scan (`formats.scanning.Plan`).

    Raises:
        ConfigurationError: an option is missing, invalid or unknown, or a path does not exist.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(dict(options))
        given = Options(self.name(), options)
        self._plan = Plan.of(given)
        ids = given.ranges("logIds")
        active = given.boolean("includeActive", default=False)
        self._bytes_max = given.size("maxPartitionBytes", 128 << 20)
        self._files = find_files(
            given,
            ".log",
            lambda file: within(ids, file.id) and (active or finished(file)),
        )
        given.finish()

    @classmethod
    def name(cls) -> str:
        """Return the name of the format, as in `spark.read.format(name)`."""
        return "bookkeeper-entrylog"

    def schema(self) -> Any:
        """Return the columns, which docs/spark.md describes."""
        return self._plan.columns(ENTRYLOG).spark()

    def reader(self, schema: Any) -> "EntryLogReader":  # noqa: ARG002  # it is that of `schema`
        """Return the reader of a query."""
        return EntryLogReader(self._plan, packed(self._files, self._bytes_max))


class EntryLogReader(FilesReader):
    """The reader. A partition has one or more complete files."""

    def batches(self, file: "DataFile") -> Iterator["pa.RecordBatch"]:
        """Yield the records of a file.

        Raises:
            ValueError: the file is damaged; the text names the file and the byte.
        """
        return log_batches(file, self.plan, ENTRYLOG)
