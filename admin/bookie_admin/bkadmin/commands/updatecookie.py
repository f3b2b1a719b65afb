"""`bkadmin updatecookie`: check the cookies of a stopped bookie, or change the id in them."""

from dataclasses import replace

import click

from bookie.errors import CookieError, IllegalOperation
from bookie.metadata.bookies.states import is_registered
from bookie.terminal.output import show
from bookie_admin.bkadmin.options import (
    Cluster,
    bookie_files,
    bookie_ids,
    configured_identity,
    sure,
    with_cluster,
    with_dry_run,
    with_output,
    with_yes,
)


@click.command()
@click.option(
    "-l", "--list", "wish", flag_value="list", help="List the bookie's cookies and the differences between them."
)
@click.option("-b", "--bookieid", "wish", flag_value="rename", help="Change the id from --old to that of --conf.")
@click.option("-d", "--delete", "wish", flag_value="delete", help="Delete the cookie of --old from the metadata store.")
@click.option("-e", "--expandstorage", "wish", flag_value="expand", help="Not supported; prints what to do instead.")
@click.option("--old", metavar="ID", shell_complete=bookie_ids, help="The previous id of the bookie.")
@with_cluster
@with_output
@with_yes
@with_dry_run
@click.pass_context
def command(
    context: click.Context,
    *,
    wish: str | None,
    old: str | None,
    cluster: Cluster,
    output: str,
    yes: bool,
    dry_run: bool,
) -> None:
    """Check the cookies of the stopped bookie of --conf, or rewrite them after its address changed.

    -b --old ID rewrites the cookies in the directories and in the metadata store with the id of --conf. Afterwards,
    change the id in the ledgers too: bkadmin updatebookieinledger.
    """
    from bookie.metadata.bookies.identity import choose_bookie_id  # noqa: PLC0415
    from bookie.storage.tools.cookie_files import compare_cookies, rewrite_cookie, show_cookies  # noqa: PLC0415
    from bookie.storage.tools.locking import locked  # noqa: PLC0415

    if wish is None or (wish in ("rename", "delete") and old is None):
        raise click.UsageError("no action is named: give -l, -b --old ID, or -d --old ID")
    if wish == "expand":
        click.echo(
            "directories cannot be added, as they decide where each ledger lies: start another bookie for more space",
            err=True,
        )
        context.exit(2)
    files = bookie_files(cluster.conf)
    bookie = choose_bookie_id(configured_identity(cluster.conf))
    with cluster.open() as driver:
        if wish == "list":
            found = compare_cookies(show_cookies(old or bookie, driver.cookies, files.all))
            rows = [{"where": one.where, "problem": one.problem or "none"} for one in found]
            show(output, "cookies", rows, bookie=old or bookie)
            context.exit(3 if any(one.problem for one in found) else 0)
        assert old is not None
        stored = driver.cookies.read(old)
        if stored is None or is_registered(driver.bookies, old):
            raise IllegalOperation(f"bookie {old} has no cookie, or is running; see bkadmin listbookies")
        if wish == "rename":
            if old == bookie:
                raise CookieError(
                    f"the id of the bookie is already {old}: change bookieId or its address in --conf first"
                )
            (cookie,) = {one.cookie for one in show_cookies(old, driver.cookies, [])}
            assert cookie is not None
            new = replace(cookie, bookie_id=bookie)
            question = f"rewrite the cookies of {old} with the id {bookie}?"
            if not sure(question, yes=yes, dry_run=dry_run, output=output):
                return
            with locked(files.all):
                driver.cookies.write(bookie, new.to_bytes(), None)
                for directory in files.all:
                    rewrite_cookie(directory, new, replace=True)
        elif not sure(f"delete the cookie of bookie {old}?", yes=yes, dry_run=dry_run, output=output):
            return
        driver.cookies.remove(old, stored[1])
    show(output, "", bookie=bookie, removed=old)
