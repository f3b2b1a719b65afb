"""Format `bookkeeper-journal`: the records of journals, read from files. Runs on the driver and in tasks."""

from collections.abc import Callable

from bookie.spark.formats.files import DataFile
from bookie.spark.formats.partitions import FilesSource
from bookie.spark.formats.scanning import journal_batches
from bookie.spark.options import Options, within
from bookie.spark.schemas import JOURNAL

__all__ = ["Journal"]


class Journal(FilesSource):
    """The data source. Its own options are `journalIds` and `includeActive`."""

    FORMAT = "bookkeeper-journal"
    SUFFIX = ".txn"
    TABLE = JOURNAL
    scan = staticmethod(journal_batches)

    def selection(self, given: Options) -> Callable[[DataFile], bool]:
        """Select the files of `journalIds`; without `includeActive`, not the newest one of a journal."""
        ids = given.ranges("journalIds")
        active = given.boolean("includeActive", default=True)
        return lambda file: within(ids, file.id) and (active or not file.newest)
