"""`bkadmin consume`: print the entries of a ledger or of a log as they are."""

import click

from bookie_admin.bkadmin.entry_stream import Source, printed, with_source
from bookie_admin.bkadmin.options import Cluster, with_cluster, with_output


@click.command()
@with_source
@with_cluster
@with_output
def command(*, source: Source, cluster: Cluster, output: str) -> None:
    """Print the payloads of all confirmed entries of LEDGER, or of the ledgers of a log, one a line, as they are.

    With `-o json` or `yaml`, ids are printed too. `bkadmin tail` goes on as entries come.

    \b
    EXAMPLES
      bkadmin consume 7
      bkadmin consume --log system | jq .MESSAGE
    """
    from bookie.client import BookKeeper  # noqa: PLC0415

    with BookKeeper(cluster.service_uri, **cluster.client) as bk:
        for ledger in source.ledgers(bk):
            with bk.open_ledger(ledger, password=source.password, recovery=False) as reader:
                if reader.last_add_confirmed >= 0:
                    with reader.batches() as batches:
                        printed(output, ledger, batches)
