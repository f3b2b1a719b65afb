"""`bkadmin cookie_update`."""

from pathlib import Path

import click

from admin.bkadmin.cookie_text import cookie_from
from admin.bkadmin.options import Cluster, sure, with_cluster, with_yes
from bookie.errors import IllegalOperation


@click.command()
@click.argument("bookie")
@click.option("-cf", "--cookie-file", "file", required=True, type=click.Path(path_type=Path, dir_okay=False))
@with_cluster
@with_yes
def command(*, bookie: str, file: Path, cluster: Cluster, yes: bool) -> None:
    """Replace the cookie of BOOKIE (its id) in the metadata store by the one in a file.

    The cookie is what keeps a bookie from serving with disks that are not its own: see docs/operations.md.
    """
    text = cookie_from(file, bookie)
    with cluster.open() as driver:
        found = driver.cookies.read(bookie)
        if found is None:
            raise IllegalOperation(f"bookie {bookie} has no cookie; bkadmin cookie_create makes one")
        sure(f"replace the cookie of bookie {bookie}?", yes=yes)
        driver.cookies.write(bookie, text, found[1])
    click.echo(f"the cookie of bookie {bookie} is replaced")
