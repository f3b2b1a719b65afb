"""`bkadmin tail`: print the last entries of a ledger or of a log, and go on as others come."""

import contextlib
import threading

import click

from bookie_admin.bkadmin.entry_stream import Source, printed, with_source
from bookie_admin.bkadmin.options import COUNT, Cluster, with_cluster, with_output


@click.command()
@click.option("-n", "--entries", "shown", type=COUNT, default=10, show_default=True, help="Entries to begin with.")
@with_source
@with_cluster
@with_output
def command(*, shown: int, source: Source, cluster: Cluster, output: str) -> None:
    """Print the payloads of the last entries of LEDGER, or of the last ledger of a log, and then each entry as it is
    acknowledged, until the ledger is closed; a log is followed through its new ledgers. Ctrl-C ends it with exit
    code 0.
    """
    with contextlib.suppress(KeyboardInterrupt):
        _follow(cluster, source, output, shown)


def _follow(cluster: Cluster, source: Source, output: str, shown: int) -> None:
    from bookie.client import BookKeeper  # noqa: PLC0415

    changed = threading.Event()
    with BookKeeper(cluster.service_uri, **cluster.client) as bk:
        watch = bk.logs.watch(source.log, lambda _: changed.set()) if source.log is not None else None
        try:
            old = source.ledgers(bk)
            seen = set(old[:-1])
            while True:
                for ledger in [one for one in source.ledgers(bk) if one not in seen]:
                    with bk.open_ledger(ledger, password=source.password, recovery=False) as reader:
                        first = max(0, reader.last_add_confirmed + 1 - shown) if ledger in old else 0
                        with reader.follow(first) as batches:
                            printed(output, ledger, batches)
                    seen.add(ledger)
                if watch is None:
                    return
                changed.wait()
                changed.clear()
        finally:
            if watch is not None:
                watch.close()
