"""Test that the memory of a response belongs to its views, though freed memory is used again."""

import os

from tests.fast.direct_peer import DIGEST, FRAME_BYTES_MAX, LONG_S, connected, sealed
from tests.reference import record


def test_memory_stays_with_its_views() -> None:
    """Views of one response keep their bytes while later responses arrive."""
    with connected() as peer:
        kept = []
        for number in range(1, 21):
            entries = [sealed(entry, os.urandom(2000)) for entry in range(40)]
            peer.send_batch(0, entries, number)
            got = peer.link.batch_read(7, 0, 40, FRAME_BYTES_MAX, DIGEST.digester, LONG_S)
            assert got is not None
            kept.append((got[1], record.pack(entries)))
            if number % 3 == 0:
                kept.pop(0)
        assert all(bytes(run) == expected for run, expected in kept)
