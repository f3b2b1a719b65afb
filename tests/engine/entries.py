"""The entries of a world. The payload follows from the ids, so that nobody has to remember it.

They have the digest of clients, CRC32C, because a bookie does not check payloads when it serves them.
"""

import hashlib
import random
import struct
from functools import cache

from bookie._fast.base.crc import crc32c

HEADER = struct.Struct(">qqqq")
DIGEST = struct.Struct(">I")
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
    head, payload = HEADER.pack(ledger, entry, lac, size), NOISE[at : at + size]
    return head + DIGEST.pack(crc32c(payload, crc32c(head))) + payload


def is_sound(data: bytes) -> bool:
    """Return whether an entry has not changed since its client sent it."""
    digest = data[HEADER.size : HEADER.size + DIGEST.size]
    return digest == DIGEST.pack(crc32c(data[HEADER.size + DIGEST.size :], crc32c(data[: HEADER.size])))


def fingerprint(data: bytes) -> bytes:
    """Return 8 bytes that identify an entry: its ids and its payload, not the LAC that its writer knew."""
    return hashlib.sha1(data[:16] + data[32:]).digest()[:8]
