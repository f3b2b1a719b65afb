"""The columns of a format: written down once, and spelled as Spark's and as Arrow's schema from there. Any process.

Spark takes Arrow batches only with exactly its own types, so the Arrow schema is what Spark makes of the Spark one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["BOOKIES", "BOOKKEEPER", "ENTRYLOG", "JOURNAL", "Kind", "LEDGERS", "REPLICAS", "Table"]

Kind = str | tuple[Any, ...]
"""A name out of NAMES, ("array", kind), ("map", kind, kind) or ("struct", {name: kind})."""

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
    """Columns in their order. All may be null, as Spark says of everything that comes from a file."""

    columns: Mapping[str, Kind]

    def without(self, *names: str) -> "Table":
        """The same without some columns."""
        return Table({name: kind for name, kind in self.columns.items() if name not in names})

    def spark(self) -> Any:
        """A StructType."""
        return _spark(("struct", self.columns))

    def arrow(self) -> "pa.Schema":
        """What record batches of this table must have."""
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
    raise TypeError(f"{kind!r} is no kind of column")


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
"""Format `bookkeeper`. Options `includeValue` and `includeMetadata` say whether `value` and `metadata` are there."""

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
"""Format `bookkeeper-entrylog`. `position`: of the entry, behind its length word; `location`: as in a Java index."""

JOURNAL = Table(
    {
        "path": "string",
        "journal_id": "bigint",
        **{name: kind for name, kind in ENTRYLOG.columns.items() if name not in {"path", "log_id", "location"}},
    }
)
"""Format `bookkeeper-journal`. `position`: of the record's length word, as marks count."""

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
"""Format `bookkeeper-ledgers`."""

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
"""Format `bookkeeper-bookies`."""

REPLICAS = Table(
    {
        "ledger_id": "bigint",
        "entry_id": "bigint",
        "bookie_id": "string",
        "status": "string",
        "detail": "string",
    }
)
"""Format `bookkeeper-replicas`."""
