"""The columns of each format, defined once and converted to Spark and Arrow schemas. Any process.

Spark accepts Arrow batches only with exactly its own types, so the Arrow schema is derived from the Spark schema.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["BOOKIES", "BOOKKEEPER", "ENTRYLOG", "JOURNAL", "Kind", "LEDGERS", "REPLICAS", "Table"]

Kind = str | tuple[Any, ...]
"""A type of a column: a name in NAMES, ("array", kind), ("map", kind, kind) or ("struct", {name: kind})."""

NAMES = {
    "bigint": "LongType",
    "binary": "BinaryType",
    "boolean": "BooleanType",
    "double": "DoubleType",
    "int": "IntegerType",
    "string": "StringType",
    "timestamp": "TimestampType",
}


@dataclass(frozen=True)
class Table:
    """The columns of a table in their order. All of them are nullable, as Spark assumes for everything that it
    reads.
    """

    columns: Mapping[str, Kind]

    def without(self, *names: str) -> "Table":
        """Return a copy without some columns."""
        return Table({name: kind for name, kind in self.columns.items() if name not in names})

    def spark(self) -> Any:
        """Return the Spark schema, a StructType."""
        return _spark(("struct", self.columns))

    def arrow(self) -> "pa.Schema":
        """Return the Arrow schema that record batches of this table must have."""
        from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415

        return to_arrow_schema(self.spark(), timezone="UTC")


def _spark(kind: Kind) -> Any:
    from pyspark.sql import types  # noqa: PLC0415

    if isinstance(kind, str):
        return getattr(types, NAMES[kind])()
    match kind:
        case ("array", inner):
            return types.ArrayType(_spark(inner))
        case ("map", of, to):
            return types.MapType(_spark(of), _spark(to))
        case ("struct", fields):
            return types.StructType([types.StructField(name, _spark(inner)) for name, inner in fields.items()])
    raise TypeError(f"{kind!r} is not a kind of column")


BOOKKEEPER = Table(
    {
        "ledger_id": "bigint",
        "entry_id": "bigint",
        "value": "binary",
        "entry_size": "int",
        "length": "bigint",
        "lac": "bigint",
        "ledger_ctime": "timestamp",
        "metadata": ("map", "string", "binary"),
    }
)
"""The columns of format `bookkeeper`. The options `includeValue` and `includeMetadata` say whether `value` and
`metadata` are present.
"""

ENTRYLOG = Table(
    {
        "path": "string",
        "log_id": "bigint",
        "position": "bigint",
        "location": "bigint",
        "ledger_id": "bigint",
        "entry_id": "bigint",
        "entry_size": "int",
        "lac": "bigint",
        "length": "bigint",
        "digest_ok": "boolean",
        "kind": "string",
        "value": "binary",
    }
)
"""The columns of format `bookkeeper-entrylog`. `position` is the file offset of the entry, after its length field;
`location` is that of an index of Apache BookKeeper.
"""

JOURNAL = Table(
    {
        "path": "string",
        "journal_id": "bigint",
        **{name: kind for name, kind in ENTRYLOG.columns.items() if name not in {"path", "log_id", "location"}},
    }
)
"""The columns of format `bookkeeper-journal`. `position` is the file offset of the record's length field, as in last
marks.
"""

LEDGERS = Table(
    {
        "ledger_id": "bigint",
        "state": "string",
        "ensemble_size": "int",
        "write_quorum": "int",
        "ack_quorum": "int",
        "last_entry": "bigint",
        "length": "bigint",
        "digest_type": "string",
        "ctime": "timestamp",
        "ensembles": ("array", ("struct", {"first_entry": "bigint", "bookies": ("array", "string")})),
        "metadata": ("map", "string", "binary"),
    }
)
"""The columns of format `bookkeeper-ledgers`."""

BOOKIES = Table(
    {
        "bookie_id": "string",
        "mode": "string",
        "rack": "string",
        "total_bytes": "bigint",
        "free_bytes": "bigint",
        "version": "string",
        "endpoints": ("array", ("struct", {"id": "string", "protocol": "string", "host": "string", "port": "int"})),
        "properties": ("map", "string", "string"),
        "problem": "string",
    }
)
"""The columns of format `bookkeeper-bookies`."""

REPLICAS = Table(
    {
        "ledger_id": "bigint",
        "entry_id": "bigint",
        "bookie_id": "string",
        "status": "string",
        "detail": "string",
    }
)
"""The columns of format `bookkeeper-replicas`."""
