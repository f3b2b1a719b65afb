"""The ledgers of one task attempt: one for each log it has rows for, and the next one when one is full. Runs on the
task's thread.

Rows arrive as Arrow record batches. The bytes of a column go to the client without a copy, as one buffer and its
offsets. The client bounds the unacknowledged entries (`maxInFlight`, `bookkeeper.maxOutstandingBytes`).
"""

import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bookie.client import BookKeeper, WriteHandle
from bookie.errors import BookKeeperError, IncorrectParameter
from bookie.metadata.records.logs import check_name
from bookie.spark.sink.labels import Labels
from bookie.spark.sink.results import Written
from bookie.spark.sink.settings import LOG, VALUE, Settings

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Attempt", "stale_at_ms"]


def stale_at_ms(settings: Settings) -> int:
    """Return the time, in milliseconds since 1970, from which what is written now may not be committed; 0: no limit."""
    if settings.orphan_ttl_s <= 0:
        return 0
    return int((time.time() + settings.orphan_ttl_s) * 1000)


class Attempt:
    """One attempt to write a partition: call `write`, then `finish`, or `give_up` after an error.

    Args:
        bk: an open client.
        settings: the settings of the sink.
        labels: the labels of the attempt; those of a ledger also name its log.
    """

    def __init__(self, bk: BookKeeper, settings: Settings, labels: Labels) -> None:
        self._bk = bk
        self._settings = settings
        self._labels = labels
        self._open: dict[str, Ledger] = {}
        self._made: list[Ledger] = []

    def write(self, batches: Iterable["pa.RecordBatch"]) -> None:
        """Append all rows, each to its log.

        Raises:
            IncorrectParameter: a value is null, or a log is null or has an invalid name.
            BookKeeperError: a ledger could not be created or written.
        """
        for batch in batches:
            for log, column in self._by_log(batch):
                payloads, offsets = flat(column)
                self._append(log, payloads, offsets)

    def finish(self) -> tuple[Written, ...]:
        """Wait until all entries are acknowledged, close the ledgers, and return them in order.

        Raises:
            BookKeeperError: an entry was not acknowledged, or a ledger could not be closed.
        """
        for ledger in self._open.values():
            ledger.handle.flush()
        for ledger in self._open.values():
            ledger.handle.close()
        self._open.clear()
        return tuple(ledger.written() for ledger in self._made)

    def give_up(self) -> None:
        """Delete what was written, as far as possible; the rest become orphans."""
        for ledger in self._made:
            with suppress(BookKeeperError):
                ledger.handle.close()
            if not self._settings.keep_on_abort:
                with suppress(BookKeeperError):
                    self._bk.delete_ledger(ledger.handle.id)

    def _by_log(self, batch: "pa.RecordBatch") -> Iterator[tuple[str, Any]]:
        values = batch.column(VALUE)
        if values.null_count:
            raise IncorrectParameter(
                f"column value is null in {values.null_count} of {len(values)} rows: remove these rows"
            )
        if not self._settings.log_column:
            yield self._settings.log, values
            return
        import pyarrow.compute as pc  # noqa: PLC0415  # only Spark's workers need it

        logs = batch.column(LOG)
        if logs.null_count:
            raise IncorrectParameter(
                f"column log is null in {logs.null_count} of {len(logs)} rows: name a log in each row"
            )
        names = pc.unique(logs).to_pylist()
        for name in names:
            yield check_name(name), values if len(names) == 1 else values.filter(pc.equal(logs, name))

    def _append(self, log: str, payloads: memoryview, offsets: NDArray[np.int64]) -> None:
        most = self._settings.ledger_bytes_max
        while len(offsets) > 1:
            ledger = self._open.get(log) or self._create(log)
            fitting = len(offsets) - 1
            if most is not None:  # at least one entry, otherwise this would never end
                room = most - ledger.bytes
                fitting = max(int(np.searchsorted(offsets, offsets[0] + room, "right")) - 1, int(ledger.entries == 0))
            if fitting:
                ledger.handle.append_all(payloads, offsets[: fitting + 1])
                ledger.entries += fitting
                ledger.bytes += int(offsets[fitting] - offsets[0])
                offsets = offsets[fitting:]
            if len(offsets) > 1:  # the rest goes to the next ledger
                ledger.handle.flush()
                ledger.handle.close()
                del self._open[log]

    def _create(self, log: str) -> "Ledger":
        ensemble, write, ack = self._settings.sizes
        labels = Labels(**{**vars(self._labels), "log": log})
        handle = self._bk.create_ledger(
            ensemble_size=ensemble,
            write_quorum_size=write,
            ack_quorum_size=ack,
            digest_type=self._settings.digest,
            password=self._settings.password,
            custom_metadata={**{name: text.encode() for name, text in self._settings.metadata}, **labels.custom()},
        )
        ledger = self._open[log] = Ledger(log, handle)
        self._made.append(ledger)
        return ledger


class Ledger:
    """A ledger that is being written, or was."""

    def __init__(self, log: str, handle: WriteHandle) -> None:
        self.log = log
        self.handle = handle
        self.entries = 0
        self.bytes = 0

    def written(self) -> Written:
        """Return what the driver needs to know."""
        return Written(self.log, self.handle.id, self.entries, self.bytes)


def flat(column: Any) -> tuple[memoryview, NDArray[np.int64]]:
    """Return the payload bytes of a binary or string array without nulls, without a copy, and the offsets of its
    values.
    """
    import pyarrow as pa  # noqa: PLC0415  # only Spark's workers need it

    large = pa.types.is_large_binary(column.type) or pa.types.is_large_string(column.type)
    _validity, offsets, payloads = column.buffers()
    width = np.dtype(np.int64 if large else np.int32)
    if not len(column):
        return memoryview(b""), np.zeros(1, dtype=np.int64)
    found = np.frombuffer(offsets, dtype=width, count=len(column) + 1, offset=column.offset * width.itemsize)
    return memoryview(payloads or b""), found.astype(np.int64)
