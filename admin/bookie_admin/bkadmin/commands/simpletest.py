"""`bkadmin simpletest`: write a ledger, read it back and compare."""

import time
from typing import Any

import click

from bookie.terminal.output import progress_bar, show
from bookie_admin.bkadmin.options import Cluster, with_cluster, with_output
from bookie_admin.bkadmin.scratch import scratch


@click.command()
@click.option("-e", "--ensemble", type=click.IntRange(min=1), default=3, show_default=True, help="Ensemble size.")
@click.option("-w", "--write-quorum", type=click.IntRange(min=1), default=2, show_default=True,
              help="Number of bookies that store each entry.")  # fmt: skip
@click.option("-a", "--ack-quorum", type=click.IntRange(min=1), default=2, show_default=True,
              help="Number of bookies that must acknowledge each add.")  # fmt: skip
@click.option("-n", "--num-entries", "count", type=click.IntRange(min=1), default=1000, show_default=True,
              help="Number of entries to write.")  # fmt: skip
@click.option("--entry-size", "size", type=click.IntRange(min=1), default=1024, show_default=True,
              help="Payload of an entry, in bytes.")  # fmt: skip
@click.option("--keep", is_flag=True, help="Do not delete the ledger at the end.")
@with_cluster
@with_output
def command(**options: Any) -> None:
    """Write a new ledger, read it back and compare, to see whether the cluster works for a client on this machine."""
    output = options.pop("output")
    show(output, "", **test(**options))


def test(
    *, ensemble: int, write_quorum: int, ack_quorum: int, count: int, size: int, keep: bool, cluster: Cluster
) -> dict[str, Any]:
    """Write, read and compare; return the results. Errors of the client are raised."""
    from bookie.client import BookKeeper  # noqa: PLC0415
    from bookie.errors import DigestMismatch  # noqa: PLC0415

    payload = bytes(range(256)) * (size // 256 + 1)
    with BookKeeper(cluster.service_uri, **cluster.client) as bk, scratch(bk, keep=keep) as made:
        begun = time.monotonic()
        with progress_bar("writing") as progress:
            new = bk.create_ledger(
                ensemble_size=ensemble, write_quorum_size=write_quorum, ack_quorum_size=ack_quorum, digest_type="CRC32C"
            )
            with new as ledger:
                made.append(ledger.id)
                for entry in range(count):
                    ledger.append_async(payload[entry % 256 :][:size])
                    progress(entry + 1, count)
        written_s = time.monotonic() - begun
        begun = time.monotonic()
        found = 0
        with bk.open_ledger(ledger.id) as reading:
            for batch in reading.batches():
                for one in batch:
                    if one.data != payload[one.id % 256 :][:size]:
                        raise DigestMismatch(
                            f"ledger {ledger.id}, entry {one.id}: the data read differs from what was written"
                        )
                    found += 1
        read_s = time.monotonic() - begun
    return {
        "ledger": ledger.id,
        "entries": found,
        "last_entry": count - 1,
        "written_per_s": count / written_s,
        "read_per_s": found / read_s,
    }
