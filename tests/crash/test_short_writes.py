"""A disk that never accepts a complete write: direct writes stop within a block, and acknowledged entries survive
kill -9.

It needs the modules for tests: `BOOKIE_FAULTS=1 make build`.
"""

import random
import sys
from pathlib import Path

import numpy as np
import pytest

from bookie.client import Channel, Digest, DigestType
from tests.fixtures.bookies import BookieProcess

pytest.importorskip("bookie._fast.testing.faulty", reason="build with BOOKIE_FAULTS=1")

DIGEST = Digest.of(DigestType.CRC32C, b"pw")
ENTRIES = 120
ENTRY_BYTES = 30_000

SERVER = """
from bookie._fast.testing import faulty
from bookie.server import main
from bookie.storage import ledger_storage
ledger_storage.Files = faulty.FaultyFiles
faulty.plan("pwritev", "SHORT", times=-1, transferred={transferred})
main.main()
"""


class ShortOfBreath(BookieProcess):
    """The real server, all of whose writes stop after `transferred` bytes, or half way if that is -1."""

    transferred = -1

    def command(self, *options: str) -> list[str]:
        rest = super().command(*options)[3:]
        return [sys.executable, "-c", SERVER.format(transferred=self.transferred), *rest]


@pytest.mark.thorough
@pytest.mark.parametrize("transferred", [-1, 5000, 40960])
@pytest.mark.parametrize("flush_interval", ["50", "100000"])
def test_short_writes_lose_nothing(tmp_path: Path, transferred: int, flush_interval: str) -> None:
    """B1: journals, entry logs and marks are written in pieces; after a kill every entry is there."""
    bookie = ShortOfBreath(tmp_path, f"lmdb://{tmp_path}/metadata", {"flushInterval": flush_interval})
    bookie.transferred = transferred
    payloads = [random.Random(entry).randbytes(ENTRY_BYTES) for entry in range(ENTRIES)]
    try:
        bookie.start()
        with Channel.connect(*bookie.address) as channel:
            for first in range(0, ENTRIES, 10):
                some = b"".join(payloads[first : first + 10])
                channel.add_batch(3, first, some, np.arange(11) * ENTRY_BYTES, digest=DIGEST, outstanding=3)
        bookie.kill()
        bookie.start()
        with Channel.connect(*bookie.address) as channel:
            for entry, payload in enumerate(payloads):
                assert DIGEST.open(channel.read(3, entry), 3).payload == payload
        assert bookie.stop() == 0
    finally:
        bookie.kill()
