"""Format `bookkeeper-entrylog`: the records of entry logs, read offline. Driver and tasks."""

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
    """Files are opened read-only, on the machine that runs the task: its paths must be there too."""

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
        """As in `spark.read.format(name)`."""
        return "bookkeeper-entrylog"

    def schema(self) -> Any:
        """docs/spark.md lists the columns."""
        return self._plan.columns(ENTRYLOG).spark()

    def reader(self, schema: Any) -> "EntryLogReader":  # noqa: ARG002  # it is the one above
        """Once a query."""
        return EntryLogReader(self._plan, packed(self._files, self._bytes_max))


class EntryLogReader(FilesReader):
    """A partition holds whole files."""

    def batches(self, file: "DataFile") -> Iterator["pa.RecordBatch"]:
        """ValueError names the file and the byte where it is damaged."""
        return log_batches(file, self.plan, ENTRYLOG)
