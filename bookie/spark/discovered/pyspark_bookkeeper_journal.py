"""Spark finds format `bookkeeper-journal` by this module's name."""

import warnings

try:
    from bookie.spark.discovery import Deferred
except Exception as error:  # noqa: BLE001  # else Spark would find no data source at all, whosever
    warnings.warn(f"format bookkeeper-journal cannot be loaded: {error!r}; pip install 'bookie[spark]'", stacklevel=1)
else:

    class DefaultSource(Deferred):
        """Loaded when it is used."""

        format_name = "bookkeeper-journal"
