"""Format `bookkeeper-entrylog`: the records of entry logs, read from files. Runs on the driver and in tasks."""

from collections.abc import Callable

from bookie.spark.formats.files import DataFile, finished
from bookie.spark.formats.partitions import FilesSource
from bookie.spark.formats.scanning import log_batches
from bookie.spark.options import Options, within
from bookie.spark.schemas import ENTRYLOG

__all__ = ["EntryLog"]


class EntryLog(FilesSource):
    """The data source. Its own options are `logIds` and `includeActive`."""

    FORMAT = "bookkeeper-entrylog"
    SUFFIX = ".log"
    TABLE = ENTRYLOG
    scan = staticmethod(log_batches)

    def selection(self, given: Options) -> Callable[[DataFile], bool]:
        """Select the logs of `logIds` that are finished; with `includeActive`, unfinished ones as well."""
        ids = given.ranges("logIds")
        active = given.boolean("includeActive", default=False)
        return lambda file: within(ids, file.id) and (active or finished(file))
