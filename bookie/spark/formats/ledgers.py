"""Format `bookkeeper-ledgers`: a row for each ledger, from its metadata. Runs on the driver and in tasks."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource

from bookie.client import aio
from bookie.client.event_loop.together import together
from bookie.errors import NoSuchLedgerMetadata
from bookie.metadata.records.ledger_metadata import LedgerMetadata, LedgerState
from bookie.spark.formats.ids import IdsReader
from bookie.spark.formats.tasks import AsyncTask
from bookie.spark.options import Options
from bookie.spark.schemas import LEDGERS

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Ledgers"]

AT_ONCE = 64
ROWS_OF_A_BATCH = 1024


class Ledgers(DataSource):
    """The data source. A ledger that is deleted during the query has no row.

    Options: `metadataServiceUri`, `bookkeeper.*`, `ledgers`, `partitions`.

    Raises:
        ConfigurationError: an option is missing, invalid or unknown.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(dict(options))
        given = Options(self.name(), options)
        self._cluster = given.cluster()
        self._wanted = given.ranges("ledgers")
        self._partitions = given.integer("partitions", 4, high=100_000)
        given.text("password")  # not used; jobs pass it to every format
        given.finish()

    @classmethod
    def name(cls) -> str:
        """Return the name of the format, as in `spark.read.format(name)`."""
        return "bookkeeper-ledgers"

    def schema(self) -> Any:
        """Return the columns, which docs/spark.md describes."""
        return LEDGERS.spark()

    def reader(self, schema: Any) -> "LedgersReader":  # noqa: ARG002  # it is that of `schema`
        """Return the reader of a query."""
        return LedgersReader(self._cluster, self._wanted, self._partitions)


class LedgersReader(IdsReader):
    """The reader. A row has the metadata as of the moment when the task reads it."""

    def batches(self, task: AsyncTask, ledgers: Sequence[int]) -> Iterator["pa.RecordBatch"]:
        """Yield batches of about 1024 rows."""
        import pyarrow as pa  # noqa: PLC0415

        schema = LEDGERS.arrow()
        for rows in task.every(_rows(task.client, ledgers)):
            yield pa.RecordBatch.from_pylist(rows, schema=schema)


async def _rows(client: aio.BookKeeper, ids: Sequence[int]) -> AsyncIterator[list[dict[str, Any]]]:
    rows: list[dict[str, Any]] = []
    for at in range(0, len(ids), AT_ONCE):
        found: list[dict[str, Any]] = []

        async def one(ledger: int, into: list[dict[str, Any]] = found) -> None:
            try:
                into.append(_row(ledger, await client.ledger_metadata(ledger)))
            except NoSuchLedgerMetadata:
                return

        await together(one(ledger) for ledger in ids[at : at + AT_ONCE])
        rows += sorted(found, key=lambda row: row["ledger_id"])
        if len(rows) >= ROWS_OF_A_BATCH:
            yield rows
            rows = []
    if rows:
        yield rows


def _row(ledger: int, metadata: LedgerMetadata) -> dict[str, Any]:
    closed = metadata.state is LedgerState.CLOSED
    ctime = metadata.ctime_ms
    return {
        "ledger_id": ledger,
        "state": metadata.state.name,
        "ensemble_size": metadata.ensemble_size,
        "write_quorum": metadata.write_quorum,
        "ack_quorum": metadata.ack_quorum,
        "last_entry": metadata.last_entry if closed else None,
        "length": metadata.length if closed else None,
        "digest_type": metadata.digest_type.name if metadata.digest_type else None,
        "ctime": datetime.fromtimestamp(ctime / 1000, UTC) if ctime is not None else None,
        "ensembles": [{"first_entry": one.first_entry, "bookies": list(one.bookies)} for one in metadata.segments],
        "metadata": list(metadata.custom.items()),
    }
