"""Whole files as the partitions of a scan. Driver and tasks."""

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
    """Files of one task."""

    files: list[DataFile]


class FilesReader(DataSourceReader):
    """Neither log nor journal has marks to begin at within, so no file is split."""

    def __init__(self, plan: Plan, partitions: list[list[DataFile]]) -> None:
        self.plan = plan
        self._partitions = partitions

    def partitions(self) -> Sequence[InputPartition]:
        """Spark makes one of None out of no partition."""
        return [FilesPartition(files) for files in self._partitions]

    def read(self, partition: Any) -> Iterator["pa.RecordBatch"]:
        """The files of a task, one by one."""
        for file in partition.files if isinstance(partition, FilesPartition) else ():
            yield from self.batches(file)

    @abstractmethod
    def batches(self, file: DataFile) -> Iterator["pa.RecordBatch"]:
        """The records of one file."""
