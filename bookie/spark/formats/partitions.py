"""Complete files as the partitions of a scan. Runs on the driver and in tasks."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

from bookie.spark.formats.files import DataFile
from bookie.spark.formats.scanning import Plan

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["FilesReader"]


@dataclass
class FilesPartition(InputPartition):
    """The files of one task."""

    files: list[DataFile]


class FilesReader(DataSourceReader):
    """A reader whose tasks process files. Files are not split, because a record can only be found from the
    beginning.
    """

    def __init__(self, plan: Plan, partitions: list[list[DataFile]]) -> None:
        self.plan = plan
        self._partitions = partitions

    def partitions(self) -> Sequence[InputPartition]:
        """Return the partitions. If there are none, Spark calls `read` once with None."""
        return [FilesPartition(files) for files in self._partitions]

    def read(self, partition: Any) -> Iterator["pa.RecordBatch"]:
        """Yield the records of the files of a partition, one file after the other."""
        for file in partition.files if isinstance(partition, FilesPartition) else ():
            yield from self.batches(file)

    @abstractmethod
    def batches(self, file: DataFile) -> Iterator["pa.RecordBatch"]:
        """Yield the records of one file."""
