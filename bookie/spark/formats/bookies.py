"""Format `bookkeeper-bookies`: a row for each bookie, from its registration and its own answer. Runs on the driver and
in one task.
"""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from bookie.client import aio
from bookie.client.event_loop.together import together
from bookie.client.placement.hosts import Registered, hosts_of
from bookie.client.placement.locations import Locations
from bookie.client.placement.resolver import resolver_for
from bookie.errors import BookKeeperError
from bookie.metadata.bookies.states import BookieState, states_of
from bookie.spark.formats.tasks import task_of
from bookie.spark.options import Cluster, Options
from bookie.spark.schemas import BOOKIES

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Bookies"]

DEFAULT_RACK = "/default-rack"
MODES = {BookieState.WRITABLE: "writable", BookieState.READ_ONLY: "read_only", BookieState.ABSENT: "down"}
ENDPOINT = ("id", "protocol", "host", "port")


class Bookies(DataSource):
    """The data source. A bookie that has a cookie but is not registered has the mode `down`.

    Options: `metadataServiceUri` and `bookkeeper.*`.

    Raises:
        ConfigurationError: an option is missing, invalid or unknown.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(dict(options))
        given = Options(self.name(), options)
        self._cluster = given.cluster()
        given.text("password")  # not used; jobs pass it to every format
        given.finish()

    @classmethod
    def name(cls) -> str:
        """Return the name of the format, as in `spark.read.format(name)`."""
        return "bookkeeper-bookies"

    def schema(self) -> Any:
        """Return the columns, which docs/spark.md describes."""
        return BOOKIES.spark()

    def reader(self, schema: Any) -> "BookiesReader":  # noqa: ARG002  # it is that of `schema`
        """Return the reader of a query."""
        return BookiesReader(self._cluster)


class BookiesReader(DataSourceReader):
    """The reader: one task asks all bookies at once."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def partitions(self) -> Sequence[InputPartition]:
        """Return a single partition."""
        return [InputPartition(0)]

    def read(self, partition: Any) -> Iterator["pa.RecordBatch"]:  # noqa: ARG002  # there is one
        """Yield a batch with a row for each bookie. One that does not answer has the reason in column `problem`.

        Raises:
            MetadataStoreError: the metadata store cannot be read.
        """
        import pyarrow as pa  # noqa: PLC0415

        with task_of(self._cluster) as task:
            for rows in task.every(_rows(task.client)):
                yield pa.RecordBatch.from_pylist(rows, schema=BOOKIES.arrow())


async def _rows(client: aio.BookKeeper) -> AsyncIterator[list[dict[str, Any]]]:
    states = states_of(
        writable=await client.bookies(),
        read_only=await client.bookies(read_only=True),
        known=await client.known_bookies(),
    )
    locations = Locations(resolver_for(client.config), DEFAULT_RACK)
    if locations.asks:
        hosts, _ = await hosts_of([one for one, state in states.items() if MODES[state] != "down"], _published(client))
        locations.learn(states, hosts)
    rows = [_empty(bookie, MODES[state], locations.of(bookie)) for bookie, state in states.items()]
    await together(_ask(client, row) for row in rows if row["mode"] != "down")
    yield rows


def _published(client: aio.BookKeeper) -> Registered:
    async def registered(bookie: str) -> bytes | None:
        info = await client.service_info(bookie)
        return None if info is None else info.to_bytes()

    return registered


def _empty(bookie: str, mode: str, rack: str) -> dict[str, Any]:
    return {**dict.fromkeys(BOOKIES.columns), "bookie_id": bookie, "mode": mode, "rack": rack}


async def _ask(client: aio.BookKeeper, row: dict[str, Any]) -> None:
    bookie = row["bookie_id"]
    try:
        published = await client.service_info(bookie)
        if published is not None:
            row["endpoints"] = [{name: getattr(end, name) for name in ENDPOINT} for end in published.endpoints]
            row["properties"] = list(published.properties.items())
            row["version"] = published.properties.get("version")
        info = await client.context.bookies.bookie_info(bookie)
        row["total_bytes"], row["free_bytes"] = info.total, info.free
    except BookKeeperError as error:
        row["problem"] = str(error)
