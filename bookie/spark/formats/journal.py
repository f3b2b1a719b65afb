"""Format `bookkeeper-journal`: the records of journals, read from files. Runs on the driver and in tasks."""

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
    """The data source. Each task opens its files read-only, so the machine that runs it must have them under the same
    paths.

    Options: `path`, `journalIds`, `includeActive`, `maxPartitionBytes`, and those of a scan (`formats.scanning.Plan`).

    Raises:
        ConfigurationError: an option is missing, invalid or unknown, or a path does not exist.
    """

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
        """Return the name of the format, as in `spark.read.format(name)`."""
        return "bookkeeper-journal"

    def schema(self) -> Any:
        """Return the columns, which docs/spark.md describes."""
        return self._plan.columns(JOURNAL).spark()

    def reader(self, schema: Any) -> "JournalReader":  # noqa: ARG002  # it is that of `schema`
        """Return the reader of a query."""
        return JournalReader(self._plan, packed(self._files, self._bytes_max))


class JournalReader(FilesReader):
    """The reader. A partition has one or more complete files."""

    def batches(self, file: "DataFile") -> Iterator["pa.RecordBatch"]:
        """Yield the records of a file.

        Raises:
            ValueError: the file is damaged; the text names the file and the byte.
        """
        return journal_batches(file, self.plan, JOURNAL)
