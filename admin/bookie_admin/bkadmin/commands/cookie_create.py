"""`bkadmin cookie_create`: create a bookie's cookie in the metadata store from a file."""

from pathlib import Path

import click

from bookie.errors import IllegalOperation, MetadataVersionConflict
from bookie.terminal.output import done
from bookie_admin.bkadmin.cookie_text import cookie_from
from bookie_admin.bkadmin.options import Cluster, with_cluster, with_output


@click.command()
@click.argument("bookie")
@click.option("-cf", "--cookie-file", "file", required=True, type=click.Path(path_type=Path, dir_okay=False),
              help="File with the cookie, as cookie_generate writes it.")  # fmt: skip
@with_cluster
@with_output
def command(*, bookie: str, file: Path, cluster: Cluster, output: str) -> None:
    """Create the cookie of BOOKIE (its id) in the metadata store from a file. The bookie must not have a cookie yet."""
    text = cookie_from(file, bookie)
    with cluster.open() as driver:
        try:
            driver.cookies.write(bookie, text, None)
        except MetadataVersionConflict:
            raise IllegalOperation(
                f"bookie {bookie} already has a cookie; replace it with bkadmin cookie_update"
            ) from None
    done(output, f"created the cookie of bookie {bookie}", bookie=bookie, created=True)
