"""How Spark finds our formats without loading them. Any process of Spark's.

Spark imports each top-level module called `pyspark_*` and registers its class `DefaultSource`. An error there takes all
data sources of the session away, so those modules (`discovered/`) only derive from `Deferred`, which loads the real
class when the format is used, and tells then what is wrong with it.
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
"""Where the class of each format is."""


class Deferred(DataSource):
    """Stands for a format until somebody uses it: making one makes the real one."""

    format_name = ""

    def __new__(cls, options: Mapping[str, str]) -> Any:
        """The real data source. ConfigurationError: it cannot be loaded."""
        from bookie.errors import ConfigurationError  # noqa: PLC0415  # this module must load whatever ours do

        try:
            module, _, name = FORMATS[cls.format_name].partition(":")
            real = getattr(import_module(module), name)
        except Exception as error:  # whatever it is, it is told to who uses the format
            raise ConfigurationError(
                f"format {cls.format_name} cannot be loaded: {error!r}; pip install 'bookie[spark]'"
            ) from error
        return real(options)

    @classmethod
    def name(cls) -> str:
        """As in `spark.read.format(name)`."""
        return cls.format_name


def deferred(name: str) -> type[Deferred]:
    """The class that Spark finds for a format: in a module of its own, so that workers find it too."""
    found: type[Deferred] = import_module(module_of(name)).DefaultSource
    return found


def module_of(name: str) -> str:
    """`bookkeeper-ledgers`: bookie.spark.discovered.pyspark_bookkeeper_ledgers."""
    return f"bookie.spark.discovered.pyspark_{name.replace('-', '_')}"
