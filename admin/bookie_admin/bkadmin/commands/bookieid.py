"""`bkadmin bookieid`: show the bookie id that a configuration results in."""

from pathlib import Path

import click

from bookie.terminal.output import done
from bookie_admin.bkadmin.options import configured_identity, with_configuration, with_output


@click.command()
@with_configuration
@with_output
def command(*, conf: Path | None, output: str) -> None:
    """Show the id of the bookie of --conf as it results on this host: cookies, ledgers and other commands know it by
    this id.
    """
    from bookie.metadata.bookies.identity import choose_bookie_id  # noqa: PLC0415

    bookie = choose_bookie_id(configured_identity(conf))
    done(output, bookie, bookie=bookie)
