"""`bkadmin listfilesondisc`: list every file of a bookie by kind."""

from pathlib import Path

import click

from bookie.storage.layout import current
from bookie.terminal.output import Bytes, show
from bookie_admin.bkadmin.options import bookie_files, with_configuration, with_output

KINDS = {"txn": "journal", "log": "entry log", "idx": "index"}


@click.command()
@click.option("-txn", "--journal", "txn", is_flag=True, help="List only journal files.")
@click.option("-log", "--entrylog", "log", is_flag=True, help="List only entry logs.")
@click.option("-idx", "--index", "idx", is_flag=True, help="List only files of the index.")
@with_configuration
@with_output
def command(*, txn: bool, log: bool, idx: bool, conf: Path | None, output: str) -> None:
    """List every file of the bookie of --conf by kind, with its length and the disk space it occupies."""
    from bookie.storage.tools.files import list_files  # noqa: PLC0415

    wanted = {KINDS[name] for name, chosen in (("txn", txn), ("log", log), ("idx", idx)) if chosen}
    found = list_files([current(one) for one in bookie_files(conf).all])
    rows = [
        {"kind": one.kind, "bytes": Bytes(one.bytes), "on_disk": Bytes(one.disk_bytes), "path": one.path}
        for one in found
        if not wanted or one.kind in wanted
    ]
    show(output, "files", rows, on_disk=Bytes(sum(row["on_disk"] for row in rows)))  # type: ignore[misc]
