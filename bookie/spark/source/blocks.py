"""Entries as Arrow record batches, with one copy of all payloads and no work in Python per entry. Runs in a worker's
main thread.

Consecutive batches are joined into a block of about BLOCK_BYTES, because each block has a cost on its way to Spark.
Each of them is received at the end of the block, where it only has to move up a little, or copied there when it
arrives, while it is in the processor's caches.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from bookie.client import EntryBatch
from bookie.client.entries.verified import PayloadBlock
from bookie.metadata.records.ledger_metadata import LedgerMetadata
from bookie.spark.source.settings import SourceSettings

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Blocks"]

BLOCK_BYTES = 4 << 20
"""The bytes of entries, with headers and digests, from which on a block is passed to Spark."""
VALUES_MAX = BLOCK_BYTES + (1 << 20)
"""The room for payloads in a block: the last batch may exceed BLOCK_BYTES."""
BLOCK_ROWS_MAX = 1 << 15


class Blocks:
    """The blocks of one ledger. Columns that have the same value in all rows are built once."""

    def __init__(self, settings: SourceSettings, ledger: int, metadata: LedgerMetadata) -> None:
        self._schema = settings.table.arrow()
        self.block = PayloadBlock(VALUES_MAX, BLOCK_ROWS_MAX, values=settings.include_value)
        self._ledger = ledger
        self._ctime_us = None if metadata.ctime_ms is None else metadata.ctime_ms * 1000
        self._custom = list(metadata.custom.items())
        self._same: dict[str, pa.Array] = {}

    def of(self, batches: Iterable[EntryBatch]) -> Iterator["pa.RecordBatch"]:
        """Yield blocks with all entries of ascending batches; entries may be missing between the batches."""
        block, nbytes = self.block, 0
        for batch in batches:
            if not batch.add_to(block):
                yield self._taken()
                batch.add_to(block)
                nbytes = 0
            nbytes += batch.nbytes
            if nbytes >= BLOCK_BYTES:
                yield self._taken()
                nbytes = 0
        if block.rows:
            yield self._taken()

    def _taken(self) -> "pa.RecordBatch":
        """Return the entries of the block, and empty it."""
        import pyarrow as pa  # noqa: PLC0415

        rows = self.block.rows
        ids, lacs, lengths, sizes, edges, values = self.block.take()
        arrays = {
            "entry_id": pa.Array.from_buffers(pa.int64(), rows, [None, pa.py_buffer(ids)]),
            "entry_size": pa.Array.from_buffers(pa.int32(), rows, [None, pa.py_buffer(sizes)]),
            "length": pa.Array.from_buffers(pa.int64(), rows, [None, pa.py_buffer(lengths)]),
            "lac": pa.Array.from_buffers(pa.int64(), rows, [None, pa.py_buffer(lacs)]),
        }
        if values is not None:
            buffers = [None, pa.py_buffer(edges), pa.py_buffer(values)]
            arrays["value"] = pa.Array.from_buffers(pa.binary(), rows, buffers)
        return pa.RecordBatch.from_arrays(
            [arrays[field.name] if field.name in arrays else self._constant(field, rows) for field in self._schema],
            schema=self._schema,
        )

    def _constant(self, field: "pa.Field", rows: int) -> "pa.Array":
        import pyarrow as pa  # noqa: PLC0415

        kept = self._same.get(field.name)
        if kept is None or len(kept) < rows:
            values = {"ledger_id": self._ledger, "ledger_ctime": self._ctime_us, "metadata": self._custom}
            one = pa.array([values[field.name]], type=field.type)
            # Blocks differ little in size, so the next ones will mostly have room in a power of two.
            kept = self._same[field.name] = one.take(pa.array(np.zeros(1 << (rows - 1).bit_length(), dtype=np.int32)))
        return kept.slice(0, rows)
