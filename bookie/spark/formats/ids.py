"""Ledger ids as partitions: the ids that are asked for, dealt to tasks. Driver and tasks."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

from bookie.spark.clients import client_of
from bookie.spark.formats.tasks import AsyncTask, task_of
from bookie.spark.options import Cluster, Ranges, within

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["IdsReader"]


@dataclass
class IdsPartition(InputPartition):
    """Ledgers of one task."""

    ledgers: list[int]


class IdsReader(DataSourceReader):
    """Ids are listed once a query, by the driver; a task has neighbours. MetadataStoreError."""

    def __init__(self, cluster: Cluster, wanted: Ranges | None, partitions: int) -> None:
        self.cluster = cluster
        ids = [ledger for ledger in client_of(cluster).list_ledgers() if within(wanted, ledger)]
        share = max(1, -(-len(ids) // partitions))
        self._partitions = [IdsPartition(ids[at : at + share]) for at in range(0, len(ids), share)]

    def partitions(self) -> Sequence[InputPartition]:
        """Spark makes one of None out of no partition."""
        return self._partitions

    def read(self, partition: Any) -> Iterator["pa.RecordBatch"]:
        """MetadataStoreError."""
        if isinstance(partition, IdsPartition):
            with task_of(self.cluster) as task:
                yield from self.batches(task, partition.ledgers)

    @abstractmethod
    def batches(self, task: AsyncTask, ledgers: Sequence[int]) -> Iterator["pa.RecordBatch"]:
        """The rows of these ledgers."""
