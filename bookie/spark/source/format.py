"""Format `bookkeeper`: what Spark makes of `spark.read.format("bookkeeper")` and its like. Any process of Spark's."""

from collections.abc import Mapping
from typing import Any

from pyspark.sql.datasource import DataSource

from bookie.errors import ConfigurationError
from bookie.spark.source.settings import NAME, SourceSettings
from bookie.spark.versions import check_packages

__all__ = ["Bookkeeper"]


class Bookkeeper(DataSource):
    """Options are looked at when it is known what they are for: reading, a stream, writing."""

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(options)
        check_packages()

    @classmethod
    def name(cls) -> str:
        """As in `format(name)`."""
        return NAME

    def schema(self) -> Any:
        """What a read brings."""
        return self._settings().table.spark()

    def reader(self, schema: Any) -> Any:
        """Of a query."""
        from bookie.spark.source.batch import BatchReader, FilteringReader  # noqa: PLC0415

        settings = self._settings(schema)
        if settings.starting == "latest":
            raise ConfigurationError(
                "option startingOffsets='latest' of format bookkeeper: a query would read nothing; give earliest, or"
                " read it as a stream"
            )
        return FilteringReader(settings) if settings.pushdown else BatchReader(settings)

    def streamReader(self, schema: Any) -> Any:  # noqa: N802  # Spark's name
        """Of a stream."""
        from bookie.spark.source.stream import StreamReader  # noqa: PLC0415

        return StreamReader(self._settings(schema))

    def writer(self, schema: Any, overwrite: bool) -> Any:  # noqa: FBT001  # Spark's signature
        """Of a batch."""
        from bookie.spark.sink.writers import batch_writer  # noqa: PLC0415

        return batch_writer(self.options, schema, overwrite=overwrite)

    def streamWriter(self, schema: Any, overwrite: bool) -> Any:  # noqa: FBT001, N802  # Spark's name and signature
        """Of a stream."""
        from bookie.spark.sink.writers import stream_writer  # noqa: PLC0415

        return stream_writer(self.options, schema, overwrite=overwrite)

    def _settings(self, schema: Any = None) -> SourceSettings:
        """As given; a schema that the user gave must be the one that there is."""
        settings = SourceSettings.of(self.options)
        if schema is not None and schema != settings.table.spark():
            raise ConfigurationError(
                f"format bookkeeper has columns of its own, {', '.join(settings.table.columns)}: leave out the schema"
            )
        return settings
