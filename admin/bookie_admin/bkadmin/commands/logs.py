"""`bkadmin logs`: list, show or delete logs (named lists of ledgers), or forget a writer."""

import click

from bookie.plural import counted
from bookie.terminal.output import done, show
from bookie_admin.bkadmin.options import Cluster, log_names, sure, with_cluster, with_dry_run, with_output, with_yes


@click.command()
@click.argument("order", type=click.Choice(("list", "show", "delete", "forget")), default="list")
@click.argument("name", required=False, shell_complete=log_names)
@click.argument("writer", required=False)
@with_yes
@with_dry_run
@with_cluster
@with_output
def command(
    *,
    order: str,
    name: str | None,
    writer: str | None,
    yes: bool,
    dry_run: bool,
    cluster: Cluster,
    output: str,
) -> None:
    """List all logs, show or delete one, or forget a writer of one.

    A log is a named, ordered list of ledgers.

    \b
    list                 list all logs; the default
    show NAME            show the ledgers and writers of a log
    delete NAME          delete a log; its ledgers stay
    forget NAME WRITER   forget how far a writer got that will not come back

    If a forgotten writer comes back after all and repeats its last batch, the log has that batch twice.
    """
    from bookie.metadata import changing_logs  # noqa: PLC0415

    if order != "list" and name is None:
        raise click.UsageError(f"{order} requires the NAME of a log")
    if order == "forget" and writer is None:
        raise click.UsageError("forget requires the WRITER: `bkadmin logs show NAME` lists the writers")
    with cluster.open() as driver:
        if name is None or order == "list":
            names = [one for page in driver.logs.names() for one in page if name in {None, one}]
            logs = [driver.logs.read(one).value for one in names]
            rows = [{"log": one, "ledgers": len(log.ledgers)} for one, log in zip(names, logs, strict=True)]
            show(output, "logs", rows)
        elif order == "show":
            found = driver.logs.read(name)
            commits = {one: commit.batch for one, commit in sorted(found.value.commits.items())}
            rows = [{"ledger": ledger} for ledger in found.value.ledgers]
            show(output, "ledgers", rows, log=name, version=found.version, writers=commits)
        elif order == "delete":
            held = counted(len(driver.logs.read(name).value.ledgers), "ledger")
            question = f"delete log {name}, a list of {held}? The ledgers stay, but no log names them any more."
            if sure(question, yes=yes, dry_run=dry_run, output=output):
                driver.logs.delete(name)
                done(output, f"deleted log {name}", log=name, deleted=True)
        elif sure(f"forget how far writer {writer} got in log {name}?", yes=yes, dry_run=dry_run, output=output):
            changing_logs.forget(driver.logs, name, str(writer))
            done(output, f"forgot writer {writer} of log {name}", log=name, forgotten=writer)
