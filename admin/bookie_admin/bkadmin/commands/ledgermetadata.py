"""`bkadmin ledgermetadata`: show, dump or restore the metadata of a ledger."""

from pathlib import Path

import click

from bookie.terminal.output import Moment, done, show
from bookie_admin.bkadmin.options import ID, Cluster, sure, with_cluster, with_dry_run, with_output, with_yes


@click.command()
@click.argument("ledger", type=ID)
@click.option(
    "-dumptofile",
    "--dump-to-file",
    "dump",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the metadata in its stored form to this file instead.",
)
@click.option(
    "-restorefromfile",
    "--restore-from-file",
    "restore",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="Create the ledger's metadata from such a file.",
)
@click.option("-update", "--update", is_flag=True, help="With --restore-from-file: replace the metadata that exists.")
@with_cluster
@with_output
@with_yes
@with_dry_run
def command(
    *,
    ledger: int,
    dump: Path | None,
    restore: Path | None,
    update: bool,
    cluster: Cluster,
    output: str,
    yes: bool,
    dry_run: bool,
) -> None:
    """Show the metadata of a LEDGER: state, quorums, and which bookies store which entries. The password is not shown.

    With -dumptofile or -restorefromfile, the stored form is written to a file or restored from one; it includes the
    password.
    """
    from bookie.metadata.records.ledger_codec import parse_ledger, serialize_ledger  # noqa: PLC0415

    if restore is not None:
        value = parse_ledger(ledger, restore.read_bytes())
        with cluster.open() as driver:
            if update:
                version = driver.ledgers.read(ledger).version
                if not sure(f"replace the metadata of ledger {ledger}?", yes=yes, dry_run=dry_run, output=output):
                    return
                driver.ledgers.write(ledger, value, version)
            elif sure(f"create ledger {ledger}?", yes=True, dry_run=dry_run, output=output):
                driver.ledgers.create(ledger, value)
            else:
                return
        done(output, f"restored ledger {ledger} from {restore}", ledger=ledger, restored=str(restore))
        return
    with cluster.open() as driver:
        found = driver.ledgers.read(ledger)
    value = found.value
    if dump is not None:
        dump.write_bytes(serialize_ledger(value))
        done(output, f"wrote the metadata of ledger {ledger} to {dump}", ledger=ledger, written=str(dump))
        return
    rows = [{"first_entry": one.first_entry, "bookies": list(one.bookies)} for one in value.segments]
    show(
        output,
        "segments",
        rows,
        ledger=ledger,
        version=found.version,
        state=value.state.name,
        ensemble_size=value.ensemble_size,
        write_quorum=value.write_quorum,
        ack_quorum=value.ack_quorum,
        last_entry=value.last_entry,
        length=value.length,
        digest_type=value.digest_type.name if value.digest_type is not None else None,
        created_ms=Moment(value.ctime_ms if value.ctime_ms is not None else found.created_ms),
        custom={key: one.decode("utf-8", "backslashreplace") for key, one in value.custom.items()},
    )
