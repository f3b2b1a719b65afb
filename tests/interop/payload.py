"""Entry content that follows from (ledger, entry, size) alone: big-endian splitmix64 words, cut to size.

The same function in Java is tests/interop/java/peer/Payload.java. The functions are pure, may be called from any
thread, and make whole ranges at once with numpy.
"""

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint64]
GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def _mix(z: Words) -> Words:
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def payloads(ledger: int, first: int, count: int, size: int) -> npt.NDArray[np.uint8]:
    """Return the contents of `count` entries from `first` on, as an array of shape (count, size)."""
    entries = np.arange(first, first + count, dtype=np.uint64)
    of_ledger = _mix(np.array([ledger], dtype=np.uint64))
    seeds = of_ledger * np.uint64(3) + _mix(entries) * np.uint64(5) + np.uint64(size)
    steps = np.arange(1, (size + 7) // 8 + 1, dtype=np.uint64) * GOLDEN
    words = _mix(seeds[:, None] + steps[None, :]).astype(">u8")
    return np.ascontiguousarray(words).view(np.uint8).reshape(count, -1)[:, :size]


def payload(ledger: int, entry: int, size: int) -> bytes:
    """Return the content of one entry."""
    return payloads(ledger, entry, 1, size).tobytes()
