"""`bkadmin simpletest`."""

import asyncio
import time
from typing import Any

import click

from admin.bkadmin.options import Cluster, with_cluster, with_output
from admin.bkadmin.scratch import scratch
from bookie.terminal.output import progress_bar, show


@click.command()
@click.option("-e", "--ensemble", type=click.IntRange(min=1), default=3, show_default=True)
@click.option("-w", "--write-quorum", type=click.IntRange(min=1), default=2, show_default=True)
@click.option("-a", "--ack-quorum", type=click.IntRange(min=1), default=2, show_default=True)
@click.option("-n", "--num-entries", "count", type=click.IntRange(min=1), default=1000, show_default=True)
@click.option("--entry-size", "size", type=click.IntRange(min=1), default=1024, show_default=True, help="Bytes.")
@click.option("--keep", is_flag=True, help="Leave the ledger; else it is deleted.")
@with_cluster
@with_output
def command(**options: Any) -> None:
    """Write a new ledger, read it back and compare: does the cluster work, for a client on this machine?"""
    output = options.pop("output")
    show(output, "", **asyncio.run(test(**options)))


async def test(
    *, ensemble: int, write_quorum: int, ack_quorum: int, count: int, size: int, keep: bool, cluster: Cluster
) -> dict[str, Any]:
    """What to tell. Raises what the client does."""
    from bookie.client.aio import BookKeeper  # noqa: PLC0415
    from bookie.errors import DigestMismatch  # noqa: PLC0415

    payload = bytes(range(256)) * (size // 256 + 1)
    async with BookKeeper(cluster.service_uri, **cluster.waits) as bk, scratch(bk, keep=keep) as made:
        begun = time.monotonic()
        with progress_bar("writing") as progress:
            new = bk.create_ledger(
                ensemble_size=ensemble, write_quorum_size=write_quorum, ack_quorum_size=ack_quorum, digest_type="CRC32C"
            )
            async with new as ledger:
                made.append(ledger.id)
                for entry in range(count):
                    await ledger.append_async(payload[entry % 256 :][:size])
                    progress(entry + 1, count)
        written_s = time.monotonic() - begun
        begun = time.monotonic()
        found = 0
        async with bk.open_ledger(ledger.id) as reading:
            async for batch in reading.batches():
                for one in batch:
                    if one.data != payload[one.id % 256 :][:size]:
                        raise DigestMismatch(f"ledger {ledger.id}, entry {one.id}: read back other than it was written")
                    found += 1
        read_s = time.monotonic() - begun
    return {
        "ledger": ledger.id,
        "entries": found,
        "last_entry": count - 1,
        "written_per_s": count / written_s,
        "read_per_s": found / read_s,
    }
