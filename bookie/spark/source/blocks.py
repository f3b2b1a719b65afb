"""Entries as Arrow record batches, with one copy of all payloads and no work per entry. Runs in a worker's main
thread.

Consecutive batches are joined into a block of at least BLOCK_BYTES, because each block has a cost on its way to Spark.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from bookie.client import EntryBatch
from bookie.metadata.records.ledger_metadata import LedgerMetadata
from bookie.spark.source.settings import SourceSettings

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Blocks"]

BLOCK_BYTES = 4 << 20
BLOCK_ROWS_MAX = 1 << 16


class Blocks:
    """The blocks of one ledger. Columns that have the same value in all rows are built once."""

    def __init__(self, settings: SourceSettings, ledger: int, metadata: LedgerMetadata) -> None:
        self._schema = settings.table.arrow()
        self._value = settings.include_value
        self._ledger = ledger
        self._ctime_us = None if metadata.ctime_ms is None else metadata.ctime_ms * 1000
        self._custom = list(metadata.custom.items())
        self._same: dict[str, pa.Array] = {}

    def of(self, batches: Iterable[EntryBatch]) -> Iterator["pa.RecordBatch"]:
        """Yield blocks with all entries of ascending batches; entries may be missing between the batches."""
        held: list[EntryBatch] = []
        nbytes = rows = 0
        for batch in batches:
            if held and batch.first != held[-1].last + 1:
                yield self._block(held, rows)
                held, nbytes, rows = [], 0, 0
            held.append(batch)
            nbytes += batch.nbytes
            rows += len(batch)
            if nbytes >= BLOCK_BYTES or rows >= BLOCK_ROWS_MAX:
                yield self._block(held, rows)
                held, nbytes, rows = [], 0, 0
        if held:
            yield self._block(held, rows)

    def _block(self, batches: list[EntryBatch], rows: int) -> "pa.RecordBatch":
        import pyarrow as pa  # noqa: PLC0415

        sizes, lacs, lengths = EntryBatch.headers(batches)
        first = batches[0].first
        arrays: dict[str, Any] = {
            "entry_id": pa.array(np.arange(first, first + rows, dtype=np.int64)),
            "entry_size": pa.array(sizes),
            "length": pa.array(lengths),
            "lac": pa.array(lacs),
        }
        if self._value:
            values, edges = EntryBatch.packed(batches)
            arrays["value"] = pa.Array.from_buffers(
                pa.binary(), rows, [None, pa.py_buffer(edges), pa.py_buffer(values)]
            )
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
            kept = self._same[field.name] = one.take(pa.array(np.zeros(rows, dtype=np.int32)))
        return kept.slice(0, rows)
