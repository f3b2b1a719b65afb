"""`bkadmin tail`: print the last entries of a ledger or of a log, and go on as others come."""

import contextlib
import threading

import click

from admin.bkadmin.entry_stream import Source, printed, with_source
from admin.bkadmin.options import COUNT, Cluster, with_cluster, with_output


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
    with BookKeeper(cluster.service_uri, **cluster.waits) as bk:
        watch = bk.logs.watch(source.log, lambda _: changed.set()) if source.log is not None else None
        seen: set[int] = set()
        left = source.ledgers(bk)
        first_of_all = left[-1:]
        try:
            while True:
                for ledger in left if seen else first_of_all:
                    with bk.open_ledger(ledger, password=source.password, recovery=False) as reader:
                        last = reader.last_add_confirmed
                        with reader.follow(0 if seen else max(0, last + 1 - shown)) as batches:
                            printed(output, ledger, batches)
                    seen.add(ledger)
                seen.update(left)
                if watch is None:
                    return
                changed.wait()
                changed.clear()
                left = [ledger for ledger in source.ledgers(bk) if ledger not in seen]
        finally:
            if watch is not None:
                watch.close()
