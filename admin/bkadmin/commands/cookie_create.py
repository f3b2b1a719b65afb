"""`bkadmin cookie_create`."""

from pathlib import Path

import click

from admin.bkadmin.cookie_text import cookie_from
from admin.bkadmin.options import Cluster, with_cluster, with_output
from bookie.errors import IllegalOperation, MetadataVersionConflict
from bookie.terminal.output import done


@click.command()
@click.argument("bookie")
@click.option("-cf", "--cookie-file", "file", required=True, type=click.Path(path_type=Path, dir_okay=False))
@with_cluster
@with_output
def command(*, bookie: str, file: Path, cluster: Cluster, output: str) -> None:
    """Put the cookie in a file into the metadata store as that of BOOKIE (its id), which has none there."""
    text = cookie_from(file, bookie)
    with cluster.open() as driver:
        try:
            driver.cookies.write(bookie, text, None)
        except MetadataVersionConflict:
            raise IllegalOperation(f"bookie {bookie} has a cookie already; bkadmin cookie_update replaces it") from None
    done(output, f"bookie {bookie} has a cookie now", bookie=bookie, created=True)
