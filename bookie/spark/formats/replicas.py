"""Format `bookkeeper-replicas`: a row for each entry and bookie of its write set, with the state of that replica. Runs
on the driver and in tasks.
"""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from pyspark.sql.datasource import DataSource

from bookie.client import aio
from bookie.spark.formats.comparing import ERROR, OK, STATUSES, Comparison, Found, Sample
from bookie.spark.formats.ids import IdsReader
from bookie.spark.formats.tasks import AsyncTask
from bookie.spark.options import Cluster, Options, Ranges
from bookie.spark.schemas import REPLICAS

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Replicas"]


@dataclass(frozen=True, slots=True)
class ReplicasPlan:
    """What is compared, and how. Pickled into tasks. `bytes_per_s` limits what one task reads from one bookie; 0: no
    limit.
    """

    cluster: Cluster
    sample: Sample
    findings_only: bool
    bytes_per_s: float


class Replicas(DataSource):
    """The data source. Digest types and passwords are taken from the metadata, as administrators read.

    Options: `metadataServiceUri`, `bookkeeper.*`, `ledgers`, `partitions`, `sample`, `samplePercent`, `findingsOnly`,
    `maxBytesPerSecondPerBookie`.

    Raises:
        ConfigurationError: an option is missing, invalid or unknown.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(dict(options))
        given = Options(self.name(), options)
        self._wanted = given.ranges("ledgers")
        self._partitions = given.integer("partitions", 4, high=100_000)
        kind = given.choice("sample", "first_last", ("first_last", "percent", "all"))
        percent = given.integer("samplePercent", 10, low=1, high=100)
        rate = given.size("maxBytesPerSecondPerBookie", 0)
        self._plan = ReplicasPlan(
            given.cluster(),
            Sample(kind, float(percent)),
            given.boolean("findingsOnly", default=False),
            rate / self._partitions,
        )
        given.text("password")  # not used; jobs pass it to every format
        given.finish()

    @classmethod
    def name(cls) -> str:
        """Return the name of the format, as in `spark.read.format(name)`."""
        return "bookkeeper-replicas"

    def schema(self) -> Any:
        """Return the columns, which docs/spark.md describes."""
        return REPLICAS.spark()

    def reader(self, schema: Any) -> "ReplicasReader":  # noqa: ARG002  # it is that of `schema`
        """Return the reader of a query."""
        return ReplicasReader(self._plan, self._wanted, self._partitions)


class ReplicasReader(IdsReader):
    """The reader. A task compares complete ledgers; an error of a bookie becomes a row, not a failure."""

    def __init__(self, plan: ReplicasPlan, wanted: Ranges | None, partitions: int) -> None:
        super().__init__(plan.cluster, wanted, partitions)
        self._plan = plan

    def batches(self, task: AsyncTask, ledgers: Sequence[int]) -> Iterator["pa.RecordBatch"]:
        """Yield a batch for each bookie and stretch of a ledger."""
        schema = REPLICAS.arrow()
        for found in task.every(_compared(task.client, self._plan, ledgers)):
            yield from (_batch(part, schema) for part in found if len(part.entries))


async def _compared(client: aio.BookKeeper, plan: ReplicasPlan, ledgers: Sequence[int]) -> AsyncIterator[list[Found]]:
    comparison = Comparison(client.context, plan.sample, plan.bytes_per_s)
    for ledger in ledgers:
        async for found in comparison.ledger(ledger):
            yield [_findings(part) for part in found] if plan.findings_only else found


def _findings(part: Found) -> Found:
    bad = part.status != OK
    return part._replace(entries=part.entries[bad], status=part.status[bad])


def _batch(part: Found, schema: "pa.Schema") -> "pa.RecordBatch":
    import pyarrow as pa  # noqa: PLC0415

    n = len(part.entries)
    detail = pa.array(np.where(part.status >= ERROR, part.detail, ""), mask=part.status < ERROR, type=pa.string())
    columns = [
        pa.repeat(part.ledger, n),
        pa.array(part.entries),
        pa.repeat(part.bookie, n),
        pa.array(STATUSES).take(pa.array(part.status)),
        detail,
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
