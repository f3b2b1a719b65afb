"""Which entry logs are compacted, and in which order. Pure functions over arrays; no thread.

Usage of a log is live bytes over all bytes of its records. Both come from the store: live bytes are summed from the
index, so an entry that was overwritten or moved counts as garbage where it first lay.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["BUCKETS", "LogUse"]

BUCKETS = 10
"""Logs are taken emptiest first, by steps of 10 %; within a step the oldest first."""


@dataclass(frozen=True, slots=True)
class LogUse:
    """The closed logs of a ledger directory at one moment: parallel arrays, ascending by log id."""

    log_ids: NDArray[np.int64]
    bytes: NDArray[np.int64]
    live: NDArray[np.int64]

    def dead(self) -> list[int]:
        """Logs that no entry of the index lies in."""
        return [int(log_id) for log_id in self.log_ids[self.live == 0]]

    def usage(self, full_bytes: int = 0) -> NDArray[np.float64]:
        """Live share of each log, 0 to 1; a log smaller than `full_bytes` is judged as if it were that large."""
        whole = np.maximum(np.maximum(self.bytes, full_bytes), 1)
        shares: NDArray[np.float64] = np.clip(self.live / whole, 0.0, 1.0)
        return shares

    def buckets(self) -> list[int]:
        """How many logs lie in each tenth of usage, the emptiest first."""
        return [int(n) for n in np.bincount(_bucket(self.usage()), minlength=BUCKETS)]

    def below(self, threshold: float, full_bytes: int = 0) -> list[int]:
        """Logs worth compacting, in the order in which that should happen. Dead ones are not among them."""
        usage = self.usage(full_bytes)
        wanted = np.flatnonzero((usage < threshold) & (self.live > 0))
        order = np.lexsort((self.log_ids[wanted], _bucket(usage[wanted])))
        return [int(log_id) for log_id in self.log_ids[wanted[order]]]


def _bucket(usage: NDArray[np.float64]) -> NDArray[np.int64]:
    tenths: NDArray[np.int64] = np.minimum((usage * BUCKETS).astype(np.int64), BUCKETS - 1)
    return tenths
