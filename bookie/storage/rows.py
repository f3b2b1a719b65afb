"""A bookie's files as rows, read offline and in bulk: for programs that look at them beside a bookie. One thread each.

A `RowSheet` says what is wanted and judged; `LogRows` and `JournalRows` read one file batch by batch, as numpy columns.
"""

from bookie._fast.entrylog.rows import LogRows
from bookie._fast.journal.rows import JournalRows
from bookie._fast.wire.record_rows import Rows, RowSheet

__all__ = ["JournalRows", "KINDS", "LogRows", "Rows", "RowSheet"]

KINDS = ("entry", "ledgers_map", "garbage", "master_key", "fence", "force", "lac")
"""What a row is, by the number in its column `kind`."""
