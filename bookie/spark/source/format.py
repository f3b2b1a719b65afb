"""Format `bookkeeper`: the data source behind `spark.read`, `readStream`, `write` and `writeStream`. Any process of
Spark.
"""

from collections.abc import Mapping
from typing import Any

from pyspark.sql.datasource import DataSource

from bookie.errors import ConfigurationError
from bookie.spark.source.settings import NAME, SourceSettings
from bookie.spark.versions import check_packages

__all__ = ["Bookkeeper"]


class Bookkeeper(DataSource):
    """The data source. Its options are parsed when it is known whether it is used to read, to stream or to write.

    `source.settings.SourceSettings` and `sink.settings.Settings` have the options; docs/spark.md describes them.

    Raises:
        ConfigurationError: pyspark or pyarrow is missing, or has an unsuitable version.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(options)
        check_packages()

    @classmethod
    def name(cls) -> str:
        """Return the name of the format, as in `format(name)`."""
        return NAME

    def schema(self) -> Any:
        """Return the columns that a read returns."""
        return self._settings().table.spark()

    def reader(self, schema: Any) -> Any:
        """Return the reader of a batch query.

        Raises:
            ConfigurationError: an option is missing, invalid or unknown.
        """
        from bookie.spark.source.batch import BatchReader, FilteringReader  # noqa: PLC0415

        settings = self._settings(schema)
        if settings.starting == "latest":
            raise ConfigurationError(
                "option startingOffsets='latest' of format bookkeeper: a batch query would read nothing; use earliest,"
                " or read the ledgers as a stream"
            )
        return FilteringReader(settings) if settings.pushdown else BatchReader(settings)

    def streamReader(self, schema: Any) -> Any:  # noqa: N802  # Spark's name
        """Return the reader of a stream.

        Raises:
            ConfigurationError: an option is missing, invalid, unknown, or not for streams.
        """
        from bookie.spark.source.stream import StreamReader  # noqa: PLC0415

        return StreamReader(self._settings(schema))

    def writer(self, schema: Any, overwrite: bool) -> Any:  # noqa: FBT001  # Spark's signature
        """Return the writer of a batch.

        Raises:
            ConfigurationError: an option is missing, invalid or unknown, or the columns cannot be written.
        """
        from bookie.spark.sink.writers import batch_writer  # noqa: PLC0415

        return batch_writer(self.options, schema, overwrite=overwrite)

    def streamWriter(self, schema: Any, overwrite: bool) -> Any:  # noqa: FBT001, N802  # Spark's name and signature
        """Return the writer of a stream.

        Raises:
            ConfigurationError: an option is missing, invalid or unknown, or the columns cannot be written.
        """
        from bookie.spark.sink.writers import stream_writer  # noqa: PLC0415

        return stream_writer(self.options, schema, overwrite=overwrite)

    def _settings(self, schema: Any = None) -> SourceSettings:
        """Parse the options. A schema that the user gave must be that of the format."""
        settings = SourceSettings.of(self.options)
        if schema is not None and schema != settings.table.spark():
            raise ConfigurationError(
                f"format bookkeeper has fixed columns, {', '.join(settings.table.columns)}: leave out the schema"
            )
        return settings
