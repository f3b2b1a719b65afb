"""A bookie's files as rows, read offline and in bulk by programs beside a bookie. Each object is for one thread.

A `RowSheet` says which rows and checks are wanted; `LogRows` and `JournalRows` read one file batch by batch into
numpy columns.
"""

from bookie._fast.entrylog.rows import LogRows
from bookie._fast.journal.rows import JournalRows
from bookie._fast.wire.record_rows import Rows, RowSheet

__all__ = ["JournalRows", "KINDS", "LogRows", "Rows", "RowSheet"]

KINDS = ("entry", "ledgers_map", "garbage", "master_key", "fence", "force", "lac")
"""Names of the kinds of rows, indexed by the number in the column `kind`."""
