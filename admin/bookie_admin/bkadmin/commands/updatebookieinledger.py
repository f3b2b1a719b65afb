"""`bkadmin updatebookieinledger`: replace a bookie's id in the metadata of all ledgers."""

import click

from bookie.terminal.output import show
from bookie_admin.bkadmin.options import Cluster, bookie_ids, sure, with_changes, with_cluster, with_output, with_yes
from bookie_admin.bkadmin.replacing import replace_bookie
from bookie_admin.bkadmin.unknown import warn_of_unknown


@click.command()
@click.option("-sb", "--src-bookie", "old", required=True, metavar="ID", shell_complete=bookie_ids,
              help="Id of the bookie to replace.")  # fmt: skip
@click.option("-db", "--dest-bookie", "new", required=True, metavar="ID", shell_complete=bookie_ids,
              help="Id of the bookie to put in its place.")  # fmt: skip
@with_changes
@with_cluster
@with_output
@with_yes
def command(
    *, old: str, new: str, per_s: int, limit: int | None, dry_run: bool, cluster: Cluster, output: str, yes: bool
) -> None:
    """Replace a bookie's id in the metadata of all ledgers, after its data was moved to a bookie with another id.

    No entries are copied: the data must already be on the new bookie. To copy it, use bkadmin recover.
    """
    from bookie.metadata.bookies.identity import check_bookie_id  # noqa: PLC0415

    check_bookie_id(new)
    if not dry_run:
        sure(f"replace bookie {old} with {new} in all ledgers?", yes=yes)
    with cluster.open() as driver:
        changed, seen = replace_bookie(driver, old, new, per_s=per_s, limit=limit, dry_run=dry_run)
    if not changed:
        warn_of_unknown(cluster, [old])
    show(output, "", changed=0 if dry_run else changed, to_change=changed if dry_run else 0, ledgers=seen)
