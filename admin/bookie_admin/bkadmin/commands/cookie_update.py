"""`bkadmin cookie_update`: replace a bookie's cookie in the metadata store with one from a file."""

from pathlib import Path

import click

from bookie.errors import IllegalOperation
from bookie.terminal.output import done
from bookie_admin.bkadmin.cookie_text import cookie_from
from bookie_admin.bkadmin.options import Cluster, bookie_ids, sure, with_cluster, with_dry_run, with_output, with_yes


@click.command()
@click.argument("bookie", shell_complete=bookie_ids)
@click.option("-cf", "--cookie-file", "file", required=True, type=click.Path(path_type=Path, dir_okay=False),
              help="File with the new cookie.")  # fmt: skip
@with_cluster
@with_output
@with_yes
@with_dry_run
def command(*, bookie: str, file: Path, cluster: Cluster, output: str, yes: bool, dry_run: bool) -> None:
    """Replace the cookie of BOOKIE (its id) in the metadata store with one from a file.

    The cookie keeps a bookie from serving with disks that are not its own: see docs/operations.md.
    """
    text = cookie_from(file, bookie)
    with cluster.open() as driver:
        found = driver.cookies.read(bookie)
        if found is None:
            raise IllegalOperation(f"bookie {bookie} has no cookie; create one with bkadmin cookie_create")
        if not sure(f"replace the cookie of bookie {bookie}?", yes=yes, dry_run=dry_run, output=output):
            return
        driver.cookies.write(bookie, text, found[1])
    done(output, f"replaced the cookie of bookie {bookie}", bookie=bookie, replaced=True)
