"""Ledger ids as partitions: the ids that are asked for, dealt to tasks. Driver and tasks."""

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql.datasource import InputPartition

from bookie.spark.clients import client_of
from bookie.spark.formats.files import Ranges, within
from bookie.spark.options import Cluster

__all__ = ["dealt", "IdsPartition"]


@dataclass
class IdsPartition(InputPartition):
    """Ledgers of one task."""

    ledgers: list[int]


def dealt(cluster: Cluster, wanted: Ranges | None, partitions: int) -> Sequence[InputPartition]:
    """All ledgers that are asked for and there, in up to so many partitions of neighbours. MetadataStoreError."""
    ids = [ledger for ledger in client_of(cluster).list_ledgers() if within(wanted, ledger)]
    share = max(1, -(-len(ids) // partitions))
    return [IdsPartition(ids[at : at + share]) for at in range(0, len(ids), share)]
