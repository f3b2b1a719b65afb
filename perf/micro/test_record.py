"""The cost of entries for a client: splitting and verifying a batch, and framing adds; 1,000 entries per call."""

import random
from typing import Any

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from bookie._fast.client.framing_v2 import AddFramer
from bookie._fast.wire import record
from bookie.client import Digest, DigestType

ENTRIES = 1000
FRAME_BYTES_MAX = 5 << 20


def payloads(size: int) -> tuple[bytes, Any]:
    """Return random payloads of `size` bytes and their offsets."""
    return random.Random(1).randbytes(size * ENTRIES), np.arange(ENTRIES + 1, dtype=np.int64) * size


def batch(digest: Digest, size: int) -> bytes:
    """Return a run of sealed entries."""
    data, _ = payloads(size)
    sealed = [digest.seal(7, k, data[k * size : (k + 1) * size], lac=-1, length=0) for k in range(ENTRIES)]
    return b"".join(len(entry).to_bytes(4, "big") + entry for entry in sealed)


@pytest.mark.parametrize("size", [128, 1024, 4096])
@pytest.mark.parametrize("kind", DigestType)
def test_verify(benchmark: BenchmarkFixture, kind: DigestType, size: int) -> None:
    """Verify ledger, id and digest of every entry."""
    digest = Digest.of(kind, b"pw")
    run = batch(digest, size)
    offsets = record.offsets(run)
    benchmark.extra_info["entries"] = ENTRIES
    assert benchmark(record.verify, digest.digester, run, offsets, 7, 0) == ENTRIES


def test_offsets(benchmark: BenchmarkFixture) -> None:
    """Find the entries in a batch."""
    run = batch(Digest.of(DigestType.DUMMY), 1024)
    benchmark.extra_info["entries"] = ENTRIES
    assert len(benchmark(record.offsets, run)) == ENTRIES + 1


@pytest.mark.parametrize("size", [128, 1024, 4096])
@pytest.mark.parametrize("kind", DigestType)
def test_frame(benchmark: BenchmarkFixture, kind: DigestType, size: int) -> None:
    """Build ADD frames, including digests."""
    digest = Digest.of(kind, b"pw")
    data, offsets = payloads(size)
    framer = AddFramer(digest.digester, digest.master_key, 7, FRAME_BYTES_MAX)
    benchmark.extra_info["entries"] = ENTRIES
    benchmark(framer.build, 0, -1, 0, data, offsets)
