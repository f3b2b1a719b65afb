"""The read cache is divided equally among the ledger directories, over real sockets."""

from pathlib import Path

from bookie.client import Channel, Digest
from tests.fixtures.whole_bookie import Running, whole_bookie

DIGEST = Digest.of(password=b"")
MIB = 1 << 20
ENTRIES, PAYLOAD = 800, 8192
"""More than 6 MB in each ledger, three times what a directory may cache."""


def cached(running: Running) -> list[float]:
    """Return the bytes in the read cache of each directory, as the metrics show them."""
    families = {family.name: family for family in running.bookie.metrics()}
    return [sample.value for sample in families["bookie_read_cache_size"].samples]


def test_each_directory_caches_its_share(tmp_path: Path) -> None:
    """Readers of cold ledgers in both of two directories fill the half of each, and no more."""
    sizes = {
        "dbStorage_keepFlushed": "false",  # else flushed memory would answer before the read cache is asked
        "dbStorage_readAheadCacheMaxSizeMb": "4",
        "dbStorage_readCacheSegmentSizeMb": "1",
    }
    with whole_bookie(tmp_path, **sizes) as running, Channel.connect(*running.address) as channel:
        for ledger in (0, 1):
            for entry in range(ENTRIES):
                channel.add_async(ledger, entry, bytes(PAYLOAD), digest=DIGEST, lac=entry - 1, length=0)
            channel.fence(ledger, DIGEST.master_key)
        running.bookie.checkpoint()
        most = [0.0, 0.0]
        for entry in range(ENTRIES):
            for ledger in (0, 1):
                channel.read(ledger, entry)
            if entry % 50 == 49:
                most = [max(pair) for pair in zip(most, cached(running), strict=True)]
    assert all(MIB < size <= 2 * MIB for size in most), most
