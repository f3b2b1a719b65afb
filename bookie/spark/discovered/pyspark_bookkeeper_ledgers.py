"""Spark finds format `bookkeeper-ledgers` by this module's name."""

from bookie.spark.discovery import Deferred


class DefaultSource(Deferred):
    """Loaded when it is used."""

    format_name = "bookkeeper-ledgers"
