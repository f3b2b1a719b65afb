"""`bkadmin bookieformat`: delete all data of a stopped bookie."""

import shutil

import click

from bookie.storage.layout import current
from bookie.terminal.output import Bytes, show
from bookie_admin.bkadmin.options import (
    Cluster,
    bookie_files,
    configured_identity,
    sure,
    with_cluster,
    with_output,
    with_yes,
)


@click.command()
@click.option("-n", "--nonInteractive", "quiet", is_flag=True, help="Do not ask for confirmation; requires -f.")
@click.option("-f", "--force", is_flag=True, help="With -n: confirm the deletion.")
@click.option(
    "-d", "--deleteCookie", "delete_cookie", is_flag=True, help="Also delete the bookie's cookie in the metadata store."
)
@click.option("--dry-run", is_flag=True, help="Show what would be deleted, and change nothing.")
@with_cluster
@with_output
@with_yes
def command(
    *, quiet: bool, force: bool, delete_cookie: bool, dry_run: bool, cluster: Cluster, output: str, yes: bool
) -> None:
    """Delete all data of the stopped bookie of --conf: journals, entry logs, index and cookie files.

    Re-replicate its ledgers first: bkadmin decommissionbookie. Only the `current` directory in each of its directories
    is deleted.
    """
    from bookie.metadata.bookies.identity import choose_bookie_id  # noqa: PLC0415
    from bookie.storage.tools.locking import locked  # noqa: PLC0415

    if quiet and not (force or yes):
        raise click.UsageError("-n (--nonInteractive) requires -f (--force)")
    files = bookie_files(cluster.conf)
    bookie = choose_bookie_id(configured_identity(cluster.conf))
    present = [directory for directory in files.all if current(directory).exists()]
    with locked([one for one in files.all if one.exists()]):
        rows = []
        for directory in present:
            sizes = [one.stat().st_size for one in current(directory).rglob("*") if one.is_file()]
            rows.append({"directory": str(directory), "files": len(sizes), "bytes": Bytes(sum(sizes))})
        if not dry_run:
            sure(f"permanently delete all data of bookie {bookie}?", yes=yes or quiet)
            for directory in present:
                shutil.rmtree(current(directory))
            if delete_cookie:
                with cluster.open() as driver:
                    if driver.cookies.read(bookie) is not None:
                        driver.cookies.remove(bookie)
    show(output, "directories", rows, bookie=bookie, deleted=not dry_run)
