"""`bkadmin cookie_generate`: generate the cookie that matches a bookie's configuration."""

from pathlib import Path

import click

from bookie.terminal.output import done
from bookie_admin.bkadmin.options import Cluster, bookie_files, with_cluster, with_output


@click.command()
@click.argument("bookie")
@click.option("-i", "--instance-id", help="Instance id of the cluster. Default: read from the metadata store.")
@click.option(
    "-f",
    "--output-file",
    "file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the cookie to this file instead of printing it.",
)
@with_cluster
@with_output
def command(*, bookie: str, instance_id: str | None, file: Path | None, cluster: Cluster, output: str) -> None:
    """Generate the cookie of BOOKIE (its id) with the directories of --conf."""
    from bookie.storage.cookies import make_cookie  # noqa: PLC0415

    files = bookie_files(cluster.conf)
    if instance_id is None:
        with cluster.open() as driver:
            instance_id = driver.cluster.instance_id()
    indexes = files.indexes if files.indexes != files.ledgers else ()
    cookie = make_cookie(
        bookie, journals=files.journals, ledgers=files.ledgers, indexes=indexes, instance_id=instance_id
    )
    text = cookie.to_bytes().decode()
    if file is None:
        done(output, text.rstrip("\n"), bookie=bookie, cookie=text.rstrip("\n"))
    else:
        file.write_text(text)
        done(output, f"wrote the cookie of bookie {bookie} to {file}", bookie=bookie, written=str(file))
