"""Format `bookkeeper-journal`: the records of journals, read offline. Driver and tasks."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource

from bookie.spark.formats.files import find_files, packed
from bookie.spark.formats.partitions import FilesReader
from bookie.spark.formats.scanning import Plan, journal_batches
from bookie.spark.options import Options, within
from bookie.spark.schemas import JOURNAL

if TYPE_CHECKING:
    import pyarrow as pa

    from bookie.spark.formats.files import DataFile

__all__ = ["Journal"]


class Journal(DataSource):
    """Files are opened read-only, on the machine that runs the task: its paths must be there too."""

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(dict(options))
        given = Options(self.name(), options)
        self._plan = Plan.of(given)
        ids = given.ranges("journalIds")
        active = given.boolean("includeActive", default=True)
        self._bytes_max = given.size("maxPartitionBytes", 128 << 20)
        self._files = find_files(given, ".txn", lambda file: within(ids, file.id) and (active or not file.newest))
        given.finish()

    @classmethod
    def name(cls) -> str:
        """As in `spark.read.format(name)`."""
        return "bookkeeper-journal"

    def schema(self) -> Any:
        """docs/spark.md lists the columns."""
        return self._plan.columns(JOURNAL).spark()

    def reader(self, schema: Any) -> "JournalReader":  # noqa: ARG002  # it is the one above
        """Once a query."""
        return JournalReader(self._plan, packed(self._files, self._bytes_max))


class JournalReader(FilesReader):
    """A partition holds whole files."""

    def batches(self, file: "DataFile") -> Iterator["pa.RecordBatch"]:
        """ValueError names the file and the byte where it is damaged."""
        return journal_batches(file, self.plan, JOURNAL)
