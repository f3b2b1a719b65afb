"""`bkadmin bookiesanity`: write a ledger to one bookie, read it back and compare."""

from typing import TYPE_CHECKING

import click

from bookie.terminal.output import show
from bookie_admin.bkadmin.options import Cluster, bookie_ids, configured_identity, with_cluster, with_output
from bookie_admin.bookie_calls import ask

if TYPE_CHECKING:
    from bookie.client.channel.v3 import ChannelV3


@click.command()
@click.argument("bookie", required=False, shell_complete=bookie_ids)
@click.option("-e", "--entries", "count", type=click.IntRange(min=1), default=10, show_default=True,
              help="Number of entries to write.")  # fmt: skip
@with_cluster
@with_output
def command(*, bookie: str | None, count: int, cluster: Cluster, output: str) -> None:
    """Write a ledger to one bookie, read it back and compare, to see whether the bookie works.

    BOOKIE is the id of the bookie; without it, the bookie of --conf is tested. The ledger is deleted afterwards.
    """
    from bookie.client.entries.digest import Digest  # noqa: PLC0415
    from bookie.errors import DigestMismatch  # noqa: PLC0415
    from bookie.metadata.bookies.identity import choose_bookie_id  # noqa: PLC0415
    from bookie.metadata.records.ledger_metadata import DigestType, LedgerMetadata, LedgerState, Segment  # noqa: PLC0415

    here = bookie or choose_bookie_id(configured_identity(cluster.conf))
    digest = Digest.of()

    def question(channel: "ChannelV3") -> None:
        length = 0
        for entry in range(count):
            payload = b"sanity %d" % entry
            length += len(payload)
            channel.add(ledger, entry, payload, digest=digest, lac=entry - 1, length=length)
        for entry in range(count):
            if digest.open(channel.read(ledger, entry), ledger, entry).payload != b"sanity %d" % entry:
                raise DigestMismatch(
                    f"bookie {here}, ledger {ledger}, entry {entry}: the data read differs from what was written"
                )

    with cluster.open() as driver:
        ledger = driver.ledgers.new_id()
        metadata = LedgerMetadata(
            ensemble_size=1,
            write_quorum=1,
            ack_quorum=1,
            segments=(Segment(0, (here,)),),
            state=LedgerState.OPEN,
            digest_type=DigestType.CRC32C,
        )
        driver.ledgers.create(ledger, metadata)
        try:
            ask(driver, here, cluster.timeout_s, question, cluster.security)
        finally:
            driver.ledgers.delete(ledger)
    show(output, "", bookie=here, ledger=ledger, entries=count, state="ok")
