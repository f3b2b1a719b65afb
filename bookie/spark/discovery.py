"""How Spark finds the formats without importing them. Runs in any process of Spark.

Spark imports every top-level module named `pyspark_*` and registers its class `DefaultSource`. An error in one of them
removes all data sources from the session, so these modules (`discovered/`) only derive from `Deferred`, which imports
the real class when the format is used and reports errors then.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from pyspark.sql.datasource import DataSource

__all__ = ["Deferred", "deferred", "FORMATS"]

FORMATS = {
    "bookkeeper": "bookie.spark.source.format:Bookkeeper",
    "bookkeeper-entrylog": "bookie.spark.formats.entrylog:EntryLog",
    "bookkeeper-journal": "bookie.spark.formats.journal:Journal",
    "bookkeeper-ledgers": "bookie.spark.formats.ledgers:Ledgers",
    "bookkeeper-bookies": "bookie.spark.formats.bookies:Bookies",
    "bookkeeper-replicas": "bookie.spark.formats.replicas:Replicas",
}
"""The module and class of each format."""


class Deferred(DataSource):
    """A placeholder for a format: creating an instance imports the real class and creates one of that."""

    format_name = ""

    def __new__(cls, options: Mapping[str, str]) -> Any:
        """Return an instance of the real data source.

        Raises:
            ConfigurationError: the format cannot be imported.
        """
        from bookie.errors import ConfigurationError  # noqa: PLC0415  # this module must load even if ours do not

        try:
            module, _, name = FORMATS[cls.format_name].partition(":")
            real = getattr(import_module(module), name)
        except Exception as error:  # any error is reported to the user of the format
            raise ConfigurationError(
                f"format {cls.format_name} cannot be loaded: {error!r}; pip install 'bookie[spark]'"
            ) from error
        return real(options)

    @classmethod
    def name(cls) -> str:
        """Return the name of the format, as in `spark.read.format(name)`."""
        return cls.format_name


def deferred(name: str) -> type[Deferred]:
    """Return the class that Spark finds for a format. It lies in a module of its own, so that workers can import it
    too.
    """
    found: type[Deferred] = import_module(module_of(name)).DefaultSource
    return found


def module_of(name: str) -> str:
    """Return the name of a format's module; `bookie.spark.discovered.pyspark_bookkeeper_ledgers` for
    `bookkeeper-ledgers`.
    """
    return f"bookie.spark.discovered.pyspark_{name.replace('-', '_')}"
