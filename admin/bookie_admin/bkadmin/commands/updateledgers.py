"""`bkadmin updateledgers`: switch a bookie's id between host name and IP address in all ledgers."""

from dataclasses import replace

import click

from bookie.terminal.output import show
from bookie_admin.bkadmin.options import (
    Cluster,
    configured_identity,
    sure,
    with_changes,
    with_cluster,
    with_output,
    with_yes,
)
from bookie_admin.bkadmin.replacing import replace_bookie


@click.command()
@click.option(
    "-b",
    "--bookieid",
    "form",
    type=click.Choice(("hostname", "ip")),
    required=True,
    help="Form of the id to change to.",
)
@with_changes
@with_cluster
@with_output
@with_yes
def command(
    *, form: str, per_s: int, limit: int | None, dry_run: bool, cluster: Cluster, output: str, yes: bool
) -> None:
    """Change the id of the bookie of --conf in all ledgers to its host name or to its IP address."""
    from bookie.metadata.bookies.identity import choose_bookie_id  # noqa: PLC0415

    identity = configured_identity(cluster.conf)
    new, old = (
        choose_bookie_id(replace(identity, use_host_name=by_name)) for by_name in (form == "hostname", form == "ip")
    )
    if not dry_run:
        sure(f"replace bookie {old} with {new} in all ledgers?", yes=yes)
    with cluster.open() as driver:
        changed, seen = replace_bookie(driver, old, new, per_s=per_s, limit=limit, dry_run=dry_run)
    show(
        output,
        "",
        old=old,
        new=new,
        changed=0 if dry_run else changed,
        to_change=changed if dry_run else 0,
        ledgers=seen,
    )
