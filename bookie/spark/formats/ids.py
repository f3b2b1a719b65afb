"""Ledger ids as the partitions of a scan: the requested ids, distributed over tasks. Runs on the driver and in
tasks.
"""

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
    """The ledgers of one task."""

    ledgers: list[int]


class IdsReader(DataSourceReader):
    """A reader whose tasks process ledgers. The driver lists the ids once a query; each task gets consecutive ones.

    Raises:
        MetadataStoreError: the metadata store cannot be read.
    """

    def __init__(self, cluster: Cluster, wanted: Ranges | None, partitions: int) -> None:
        self.cluster = cluster
        ids = [ledger for ledger in client_of(cluster).list_ledgers() if within(wanted, ledger)]
        share = max(1, -(-len(ids) // partitions))
        self._partitions = [IdsPartition(ids[at : at + share]) for at in range(0, len(ids), share)]

    def partitions(self) -> Sequence[InputPartition]:
        """Return the partitions. If there are none, Spark calls `read` once with None."""
        return self._partitions

    def read(self, partition: Any) -> Iterator["pa.RecordBatch"]:
        """Yield the rows of a partition.

        Raises:
            MetadataStoreError: the metadata store cannot be read.
        """
        if isinstance(partition, IdsPartition):
            with task_of(self.cluster) as task:
                yield from self.batches(task, partition.ledgers)

    @abstractmethod
    def batches(self, task: AsyncTask, ledgers: Sequence[int]) -> Iterator["pa.RecordBatch"]:
        """Yield the rows of these ledgers."""
