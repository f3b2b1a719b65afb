"""`bkadmin produce`: write the lines of standard input to a new ledger."""

import sys
from typing import Any

import click

from bookie.plural import counted
from bookie.terminal.output import Bytes, done
from bookie_admin.bkadmin.options import Cluster, log_names, with_cluster, with_output

LINE_BYTES_MAX = 1 << 28
"""A line is read up to here: no bookie takes an entry of this size, so input without an end of line is refused."""


@click.command()
@click.option(
    "--log",
    "name",
    metavar="NAME",
    shell_complete=log_names,
    help="Append the new ledger to this log, which is created if needed.",
)
@click.option("--ensemble", type=click.IntRange(min=1), default=3, show_default=True, help="Number of bookies.")
@click.option("--write-quorum", type=click.IntRange(min=1), help="Copies of each entry. Default: the ensemble's size.")
@click.option(
    "--ack-quorum", type=click.IntRange(min=1), help="Copies before an acknowledgement. Default: most of them."
)
@click.option("--password", default="", help="Password of the ledger. Default: none.")
@with_cluster
@with_output
def command(*, name: str | None, cluster: Cluster, output: str, password: str, **sizes: Any) -> None:
    """Write each line of standard input as an entry of a new ledger, close the ledger, and print its id.

    An entry is stored once its bookies have synced it; this command ends when all are. If it is interrupted, what was
    acknowledged stays in the ledger. With --log, `bkadmin tail --log NAME` shows the entries meanwhile.

    \b
    EXAMPLES
      seq 1000000 | bkadmin produce
      journalctl -f -o json | bkadmin produce --log system
    """
    from bookie.client import BookKeeper  # noqa: PLC0415

    entries = size = 0
    added = None
    with (
        BookKeeper(cluster.service_uri, explicitLacInterval=200, **cluster.client) as bk,
        bk.create_ledger(
            ensemble_size=sizes["ensemble"],
            write_quorum_size=sizes["write_quorum"],
            ack_quorum_size=sizes["ack_quorum"],
            password=password.encode(),
        ) as ledger,
    ):
        if name is not None:
            bk.logs.append(name, [ledger.id])
        for line in iter(lambda: sys.stdin.buffer.readline(LINE_BYTES_MAX), b""):
            data = line.removesuffix(b"\n")
            added = ledger.append_async(data)
            entries, size = entries + 1, size + len(data)
        if added is not None:
            added.result()
    text = f"ledger {ledger.id}: {counted(entries, 'entry')}, {Bytes(size)}"
    done(output, text, ledger=ledger.id, entries=entries, bytes=size)
