"""Sizes of responses and frames: what fits, what does not, and that reading continues after what does not fit."""

import asyncio
import ctypes
import gc
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bookie.client import Channel, Security, Tls
from bookie.client.ledgers.reader import LedgerReader
from bookie.errors import BookKeeperError
from tests.client.ledgers.odd_bookie import TORN, batch, odd_bookie
from tests.client.ledgers.shelf import DIGEST, Shelf, metadata, sealed
from tests.fixtures.certificates import Authority
from tests.hostile.local import local_bookie
from tests.hostile.tls_peer import settings_of
from tests.reference import record as model

HEADER, PREFIX = 36, 4
TEARS = int(os.environ.get("BOOKIE_TORN_ANSWERS", "1000"))
"""BR10 says 10,000, which takes half a minute; this many would show a leak of the 50 kB received of each response."""


def test_br4_as_much_as_fits(shelf: Shelf) -> None:
    """BR4: 36 + the sum of (length + 4) is at most max_size, another entry would not fit, and the first one comes."""
    ledger = shelf.ledger(range(30))
    sizes = [PREFIX + len(sealed(ledger, entry)) for entry in range(30)]

    async def work(reader: LedgerReader) -> None:
        for first in (0, 7, 28):
            for limit in (
                1,
                HEADER,
                HEADER + sizes[first] - 1,
                *(HEADER + sum(sizes[first:end]) for end in range(first + 1, 31)),
            ):
                for size in (limit, limit + 1):
                    got = await reader.batch_read(first, 0, size)
                    assert got.first == first
                    assert len(got) == 1 or HEADER + got.nbytes <= size
                    assert got.last == 29 or HEADER + got.nbytes + sizes[got.last + 1] > size

    for batches in (True, False):
        value = metadata({0: shelf.ids}, 29)
        shelf.read(ledger, value, work, use_v2_wire_protocol=True, batch_read_enabled=batches)


def test_br13_an_entry_above_the_frame(shelf: Shelf, v2: bool) -> None:
    """BR13: an entry above the reader's frame limit raises an error that names it; others are read."""
    ledger = shelf.ledger([0, 2], (0,))
    large = DIGEST.seal(ledger, 1, bytes(200_000), lac=0, length=0)
    with Channel.connect(*shelf.bookies[0].address) as channel:
        channel.add_stored_async(large, DIGEST.master_key).result()

    async def work(reader: LedgerReader) -> None:
        for _ in range(3):
            assert [entry.id for entry in await reader.batch_read(0, 1)] == [0]
            for call in (reader.read, reader.batch_read):
                with pytest.raises(BookKeeperError, match=f"ledger {ledger}, entry 1: no good answer"):
                    await call(1, 1)
            assert [entry.id for entry in await reader.read(2, 2)] == [2]

    value = metadata({0: shelf.ids[:1]}, 2)
    shelf.read(ledger, value, work, use_v2_wire_protocol=v2, nettyMaxFrameSizeBytes=65_536, read_timeout_s=20)


def resident_kib() -> int:
    """Return the resident memory of this process, without garbage and without what malloc keeps."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


@pytest.mark.thorough
def test_br10_memory_stays_flat_under_torn_answers(shelf: Shelf) -> None:
    """BR10: memory does not grow while a bookie closes in the middle of a response, again and again."""
    whole = model.pack(
        [sealed(7, entry) for entry in range(10)] + [DIGEST.seal(7, 10, bytes(100_000), lac=9, length=0)]
    )

    async def main() -> None:
        async with (
            odd_bookie(lambda request: TORN + batch(request, whole)[:50_000]) as odd,
            shelf.reader(7, metadata({0: [odd]}, 10), use_v2_wire_protocol=True) as reader,
        ):
            half = 0
            for round_ in range(TEARS):
                # A bookie that never answered a batch read is not sent another one, but single reads.
                with pytest.raises(BookKeeperError, match="entry 0: no good answer"):
                    await reader.batch_read(0)
                if round_ == TEARS // 2:
                    half = resident_kib()
            assert resident_kib() - half < 16 << 10

    asyncio.run(main())


@pytest.mark.thorough
def test_br14_large_batches_through_tls(shelf: Shelf, tmp_path: Path, v2: bool) -> None:
    """BR14, L14: batches of 5 MB in V2 over TLS have valid digests and the bytes that were written."""
    ca = Authority(tmp_path / "ca")
    client = ca.issue("client")
    seeded_random = np.random.default_rng(5)
    data = seeded_random.integers(0, 256, 12 << 20, dtype=np.uint8)
    offsets = np.linspace(0, len(data), 1001).astype(np.int64)
    room: dict[str, Any] = {"write_cache_bytes": 64 << 20, "buffer_bytes": 16 << 20}
    security = Security(encrypt=Tls(trust_store=ca.certificate, certificate=client.certificate, key=client.key))
    tls = settings_of(ca.issue("bookie", hosts=["localhost"]), trust=ca.certificate)
    settings = {
        "clientTrustStore": str(ca.certificate),
        "tlsCertificatePath": str(client.certificate),
        "tlsKeyStore": str(client.key),
    }

    async def work(reader: LedgerReader) -> None:
        got, largest = bytearray(), 0
        at = 0
        while at < 1000:
            batch = await reader.batch_read(at)
            largest = max(largest, batch.nbytes)
            for entry in batch:
                got += entry.data
            at = batch.last + 1
        assert got == data.tobytes()
        assert largest > (4 << 20 if v2 else 0)
        again = bytearray()
        async for batch in reader.batches(0, 999, max_size=5 << 20):
            again += b"".join(entry.data for entry in batch)
        assert again == got

    with local_bookie(tmp_path / "bookie", tls=tls, **room) as bookie:
        with Channel.connect("localhost", bookie.address[1], security=security) as channel:
            channel.add_batch(7, 0, data.data, offsets, digest=DIGEST)
        value = metadata({0: [f"localhost:{bookie.address[1]}"]}, 999)
        shelf.read(7, value, work, use_v2_wire_protocol=v2, **settings)
