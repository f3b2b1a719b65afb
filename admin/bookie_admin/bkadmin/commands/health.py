"""`bkadmin health`: whether the cluster needs an operator, on one screen."""

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import click

from bookie.metadata.bookies.states import BookieState, bookie_states
from bookie.terminal.lazy import EXIT_PARTIAL
from bookie.terminal.output import Bytes, State, show
from bookie_admin.bkadmin.auditor import NO_AUDITOR
from bookie_admin.bkadmin.options import Cluster, with_cluster, with_output
from bookie_admin.bookie_calls import space

if TYPE_CHECKING:
    from bookie.client.wire.bookie_space import BookieInfo
    from bookie.metadata.driver import MetadataDriver

AT_A_TIME = 32
FULL_PERCENT = 90


@click.command()
@click.option(
    "--full",
    type=click.IntRange(1, 100),
    default=FULL_PERCENT,
    show_default=True,
    metavar="PERCENT",
    help="From which use on the disks of a bookie count as filling up.",
)
@with_cluster
@with_output
@click.pass_context
def command(context: click.Context, /, *, full: int, cluster: Cluster, output: str) -> None:
    """Show on one screen whether the cluster needs an operator: its bookies with state, version and disks, the state of
    replication, and a line for each problem.

    The exit code is 0 without problems and 3 with some, so that scripts can call it. `version` is empty for bookies of
    Apache BookKeeper, which do not publish theirs.
    """
    security = cluster.security
    with cluster.open() as driver:
        states = bookie_states(driver.bookies)
        present = [bookie for bookie, state in states.items() if state is not BookieState.ABSENT]
        with ThreadPoolExecutor(max(1, min(len(present), AT_A_TIME))) as pool:
            answers = dict(
                zip(
                    present, pool.map(lambda one: space(driver, one, cluster.timeout_s, security), present), strict=True
                )
            )
        versions = {bookie: _version(driver, bookie) for bookie in present}
        replication: dict[str, Any] = {
            "auditor": driver.election.auditor(),
            "replication_enabled": driver.replication.enabled(),
            "underreplicated_ledgers": sum(map(len, driver.replication.marks())),
        }
    rows = [_row(bookie, state, answers.get(bookie), versions.get(bookie)) for bookie, state in states.items()]
    problems = [*_of_bookies(rows, answers, full), *_of_replication(replication)]
    if output != "table":
        show(output, "bookies", rows, **replication, problems=problems)
    else:
        show(output, "bookies", rows, **{**replication, "auditor": replication["auditor"] or "none"})
        click.echo("\n".join(["", *problems]) if problems else "\nno problem was found")
    if problems:
        context.exit(EXIT_PARTIAL)


def _version(driver: "MetadataDriver", bookie: str) -> str | None:
    from bookie.metadata.bookies.service_info import VERSION_PROPERTY, readable_service_info  # noqa: PLC0415

    info = readable_service_info(bookie, driver.bookies.info(bookie))
    return info.properties.get(VERSION_PROPERTY) if info else None


def _row(bookie: str, state: BookieState, answer: "BookieInfo | str | None", version: str | None) -> dict[str, Any]:
    row: dict[str, Any] = {"bookie": bookie, "state": State(state.value), "version": version}
    if answer is None or isinstance(answer, str):
        return {**row, "free": None, "total": None, "used_percent": None}
    used = 100 * (answer.total - answer.free) / answer.total if answer.total else None
    return {
        **row,
        "free": Bytes(answer.free),
        "total": Bytes(answer.total),
        "used_percent": None if used is None else round(used, 1),
    }


def _of_bookies(rows: list[dict[str, Any]], answers: "dict[str, BookieInfo | str]", full: int) -> list[str]:
    problems = []
    for row in rows:
        bookie, answer = row["bookie"], answers.get(row["bookie"])
        if row["state"] == BookieState.ABSENT.value:
            problems.append(f"{bookie} is down: start it, or retire it with bkadmin decommissionbookie {bookie}")
        elif isinstance(answer, str):
            problems.append(f"{bookie} is registered and does not answer: {answer}")
        elif row["used_percent"] is not None and row["used_percent"] >= full:
            problems.append(f"the disks of {bookie} are {row['used_percent']} percent full")
        if row["state"] == BookieState.READ_ONLY.value:
            problems.append(f"{bookie} is read-only: bkadmin status names the reason")
    if not any(row["state"] == BookieState.WRITABLE.value for row in rows):
        problems.append("no bookie is writable")
    return problems


def _of_replication(replication: dict[str, Any]) -> list[str]:
    problems = []
    if replication["underreplicated_ledgers"]:
        problems.append(
            f"ledgers that lack replicas: {replication['underreplicated_ledgers']}; see bkadmin listunderreplicated"
        )
    if not replication["replication_enabled"]:
        problems.append("re-replication is disabled: bkadmin autorecovery --enable")
    if replication["auditor"] is None:
        problems.append(NO_AUDITOR)
    return problems
