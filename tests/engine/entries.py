"""The entries of a world. The payload follows from the ids, so that nobody has to remember it."""

import hashlib
import random
import struct
from functools import cache

HEADER = struct.Struct(">qqqq")
NOISE = random.Random("noise").randbytes(1 << 20)
KEY = bytes(range(20))


def _size(ledger: int, entry: int, most: int) -> int:
    rng = random.Random(ledger * 1_000_003 + entry)
    kind = rng.random()
    if kind < 0.8:
        return rng.randrange(0, 300)
    if kind < 0.98:
        return min(rng.randrange(300, 8_000), most)
    return min(rng.choice((40_000, most)), most)


@cache
def stored(ledger: int, entry: int, lac: int, most: int) -> bytes:
    """Return an entry as stored, with a payload of at most `most` bytes."""
    size = _size(ledger, entry, min(most, 200_000))
    at = (ledger * 7919 + entry * 104_729) % (len(NOISE) - size)
    return HEADER.pack(ledger, entry, lac, size) + NOISE[at : at + size]


def fingerprint(data: bytes) -> bytes:
    """Return 8 bytes that identify an entry: its ids and its payload, not the LAC that its writer knew."""
    return hashlib.sha1(data[:16] + data[32:]).digest()[:8]
