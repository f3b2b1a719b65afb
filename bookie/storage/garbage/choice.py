"""The choice of entry logs to compact, and their order. Pure functions over arrays; no thread.

The usage of a log is the share of live bytes in the bytes of its records. The store supplies both. Live bytes are
summed from the index, so an entry that was overwritten or moved counts as garbage in its old log.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["BUCKETS", "LogUse"]

BUCKETS = 10
"""Logs are compacted in order of usage, in steps of 10 %, and within a step from the oldest to the newest."""


@dataclass(frozen=True, slots=True)
class LogUse:
    """The closed logs of a ledger directory at one moment: parallel arrays, in ascending order of log id."""

    log_ids: NDArray[np.int64]
    bytes: NDArray[np.int64]
    live: NDArray[np.int64]

    def dead(self) -> list[int]:
        """Return the logs that hold no live entry."""
        return [int(log_id) for log_id in self.log_ids[self.live == 0]]

    def usage(self, full_bytes: int = 0) -> NDArray[np.float64]:
        """Return the usage of each log, 0 to 1. A log smaller than `full_bytes` is treated as if it were that large."""
        whole = np.maximum(np.maximum(self.bytes, full_bytes), 1)
        shares: NDArray[np.float64] = np.clip(self.live / whole, 0.0, 1.0)
        return shares

    def buckets(self) -> list[int]:
        """Return the number of logs in each tenth of usage, the emptiest first."""
        return [int(n) for n in np.bincount(_bucket(self.usage()), minlength=BUCKETS)]

    def below(self, threshold: float, full_bytes: int = 0) -> list[int]:
        """Return the logs with a usage below `threshold`, in the order of compaction. Dead logs are not among them."""
        usage = self.usage(full_bytes)
        wanted = np.flatnonzero((usage < threshold) & (self.live > 0))
        order = np.lexsort((self.log_ids[wanted], _bucket(usage[wanted])))
        return [int(log_id) for log_id in self.log_ids[wanted[order]]]


def _bucket(usage: NDArray[np.float64]) -> NDArray[np.int64]:
    tenths: NDArray[np.int64] = np.minimum((usage * BUCKETS).astype(np.int64), BUCKETS - 1)
    return tenths
