"""Formats whose partitions are complete files of a bookie. Runs on the driver and in tasks."""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from bookie.spark.formats.files import DataFile, find_files, packed
from bookie.spark.formats.scanning import Plan
from bookie.spark.options import Options
from bookie.spark.schemas import Table

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["FilesSource"]

Scan = Callable[[DataFile, Plan, Table], Iterator["pa.RecordBatch"]]
"""`FilesSource.scan` of a format."""


class FilesSource(DataSource):
    """A data source of files with one suffix. Each task opens its files read-only, so the machine that runs it must
    have them under the same paths.

    Options: `path`, `maxPartitionBytes`, those of a scan (`formats.scanning.Plan`), and those of the format.

    Raises:
        ConfigurationError: an option is missing, invalid or unknown, or a path does not exist.
    """

    FORMAT: ClassVar[str]
    SUFFIX: ClassVar[str]
    TABLE: ClassVar[Table]

    @staticmethod
    @abstractmethod
    def scan(file: DataFile, plan: Plan, table: Table) -> Iterator["pa.RecordBatch"]:
        """Yield the records of one file. Raises ValueError, which names the file and the byte, if it is damaged."""

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(dict(options))
        given = Options(self.name(), options)
        self._plan = Plan.of(given)
        self._bytes_max = given.size("maxPartitionBytes", 128 << 20)
        self._files = find_files(given, self.SUFFIX, self.selection(given))
        given.finish()

    @abstractmethod
    def selection(self, given: Options) -> Callable[[DataFile], bool]:
        """Return which files the options of the format select."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format, as in `spark.read.format(name)`."""
        return cls.FORMAT

    def schema(self) -> Any:
        """Return the columns, which docs/spark.md describes."""
        return self._plan.columns(self.TABLE).spark()

    def reader(self, schema: Any) -> "FilesReader":  # noqa: ARG002  # it is that of `schema`
        """Return the reader of a query."""
        return FilesReader(self._plan, packed(self._files, self._bytes_max), self.scan, self.TABLE)


@dataclass
class FilesPartition(InputPartition):
    """The files of one task."""

    files: list[DataFile]


class FilesReader(DataSourceReader):
    """A reader whose tasks process files. Files are not split, because a record can only be found from the
    beginning.
    """

    def __init__(self, plan: Plan, partitions: list[list[DataFile]], scan: Scan, table: Table) -> None:
        self._plan = plan
        self._partitions = partitions
        self._scan = scan
        self._table = table

    def partitions(self) -> Sequence[InputPartition]:
        """Return the partitions. If there are none, Spark calls `read` once with None."""
        return [FilesPartition(files) for files in self._partitions]

    def read(self, partition: Any) -> Iterator["pa.RecordBatch"]:
        """Yield the records of the files of a partition, one file after the other."""
        for file in partition.files if isinstance(partition, FilesPartition) else ():
            yield from self._scan(file, self._plan, self._table)
