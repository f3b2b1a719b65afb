"""Tests the contract of the asyncio client in both protocols against Apache BookKeeper's registered bookie."""

import asyncio

import pytest

from bookie.client import Flags
from bookie.client.bookies import BookieClient, MetadataStore
from bookie.client.config import ClientConfig
from bookie.errors import (
    BookieUnavailable,
    IllegalOperation,
    LedgerFenced,
    NoSuchEntry,
    NoSuchLedger,
    UnauthorizedAccess,
)
from bookie.metadata import open_driver
from tests.client.bookies.senders import DIGEST, Owner, records, sealed
from tests.fixtures.java_peer import BATCH_READS
from tests.interop.conftest import Standing

pytestmark = pytest.mark.interop

KEY = DIGEST.master_key
ENTRIES = 5000


async def life(client: BookieClient, bookie: str, ledger: int, *, v2: bool) -> None:
    """Run a ledger's life on one bookie: sender, single add, reads, batches where there are any, LACs, fence."""
    owner = Owner()
    sender = client.adds(bookie, ledger, KEY, owner)
    for start in range(0, ENTRIES, 100):
        sender.send(*records(ledger, range(start, start + 100)))
    await owner.until(ENTRIES)
    assert owner.codes == {entry: [0] for entry in range(ENTRIES)}
    assert (await client.read(bookie, ledger, 17)).stored == sealed(ledger, 17, b"17".ljust(100, b"."))
    assert (await client.read(bookie, ledger, -1)).entry == ENTRIES - 1
    with pytest.raises(NoSuchEntry):
        await client.read(bookie, ledger, ENTRIES)
    with pytest.raises(NoSuchLedger):
        await client.read(bookie, ledger + 1, 0)
    packet = DIGEST.seal_lac(ledger, ENTRIES - 1)
    await client.write_lac(bookie, ledger, ENTRIES - 1, packet, KEY)
    assert (await client.read_lac(bookie, ledger)).packet == packet
    await client.write_close(bookie, ledger, KEY)  # not advertised there: nothing is sent
    info = await client.bookie_info(bookie)
    assert info.total >= info.free > 0
    with pytest.raises(UnauthorizedAccess):
        await client.add(bookie, ledger, ENTRIES, sealed(ledger, ENTRIES, b"x"), bytes(20))
    await client.read(bookie, ledger, -1, flags=Flags.FENCE | Flags.HIGH_PRIORITY, master_key=KEY)
    sender.send(*records(ledger, [ENTRIES]))
    await owner.until(ENTRIES + 1)
    assert owner.codes[ENTRIES] == [LedgerFenced.code]
    await client.add(bookie, ledger, ENTRIES, sealed(ledger, ENTRIES, b"x"), KEY, flags=Flags.RECOVERY_ADD)
    if not v2:
        await client.force(bookie, ledger)
    if v2 and not BATCH_READS:
        with pytest.raises(BookieUnavailable, match="connection lost"):
            await client.batch_read(bookie, ledger, 0, 500, 1 << 20)
        assert not client.batches(bookie)
    elif v2:
        batches = await asyncio.gather(
            *(client.batch_read(bookie, ledger, start, 500, 1 << 20) for start in range(0, ENTRIES, 500))
        )
        for batch in batches:
            batch.verify(DIGEST)
        assert [len(batch) for batch in batches] == [500] * (ENTRIES // 500)
        assert client.batches(bookie)
    else:
        with pytest.raises(IllegalOperation, match="read entry by entry"):
            await client.batch_read(bookie, ledger, 0, 500, 1 << 20)
        assert not client.batches(bookie)
    assert client.pending(bookie) == 0


@pytest.mark.parametrize("v2", [True, False], ids=["V2", "V3"])
def test_a_ledgers_life_on_a_java_bookie(standing: Standing, shared_cluster_uri: str, *, v2: bool) -> None:
    """BR6: batches exist in V2, and in V3 only if a bookie advertises them, as ours do. Everything else is the same."""
    bookie = standing("java", shared_cluster_uri)

    async def main() -> None:
        store = await MetadataStore.open(open_driver(shared_cluster_uri))
        try:
            config = ClientConfig(use_v2_wire_protocol=v2, read_timeout_s=60, add_timeout_s=60)
            async with BookieClient(config, store.info) as client:
                await life(client, bookie.id, 3_000_000 + 10 * v2, v2=v2)
        finally:
            await store.close()

    asyncio.run(main())
