"""Spark finds format `bookkeeper-replicas` by this module's name."""

from bookie.spark.discovery import Deferred


class DefaultSource(Deferred):
    """Loaded when it is used."""

    format_name = "bookkeeper-replicas"
