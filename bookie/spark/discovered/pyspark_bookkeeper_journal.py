"""Makes format `bookkeeper-journal` known to Spark, which imports every top-level module of such a name."""

import warnings

try:
    from bookie.spark.discovery import Deferred
except Exception as error:  # noqa: BLE001  # an error here would remove all data sources, including those of others
    warnings.warn(f"format bookkeeper-journal cannot be loaded: {error!r}; pip install 'bookie[spark]'", stacklevel=1)
else:

    class DefaultSource(Deferred):
        """The placeholder of the format, whose class is imported when the format is used."""

        format_name = "bookkeeper-journal"
