"""`bkadmin bookieinfo`: show free space and placement weight of every bookie."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import click

from bookie.terminal.lazy import EXIT_PARTIAL
from bookie.terminal.output import Bytes, show
from bookie_admin.bkadmin.options import Cluster, with_cluster, with_output
from bookie_admin.bookie_calls import space

AT_A_TIME = 32


@click.command()
@click.option(
    "--multiple",
    type=click.IntRange(min=0),
    default=3,
    show_default=True,
    help="Cap of a weight as a multiple of --cap; 0: no cap.  [bookieMaxMultipleForWeightBasedPlacement]",
)
@click.option(
    "--cap",
    type=click.Choice(("median", "min")),
    default="median",
    show_default=True,
    help="Whether --multiple refers to the median or the minimum weight.  [diskWeightCapMode]",
)
@with_cluster
@with_output
@click.pass_context
def command(context: click.Context, *, multiple: int, cap: str, cluster: Cluster, output: str) -> None:
    """Show the free space of every bookie and the weight that it gives the bookie in placement.

    `weight` is the bookie's share of the free space of all writable bookies. `capped` is the share after capping,
    which is the probability that weighted placement chooses the bookie first. Read-only bookies are never chosen, so
    they have no weight; `free` and `total` below the table include them. A bookie that does not answer is listed as
    failed, and the exit code is 3.
    """
    from bookie.client.placement.weights import shares  # noqa: PLC0415

    security = cluster.security
    with cluster.open() as driver:
        writable = driver.bookies.present(read_only=False)
        bookies = sorted(writable | driver.bookies.present(read_only=True))
        with ThreadPoolExecutor(max(1, min(len(bookies), AT_A_TIME))) as pool:
            answers = list(pool.map(lambda one: space(driver, one, cluster.timeout_s, security), bookies))
    free = {
        bookie: answer.free if not isinstance(answer, str) else 0
        for bookie, answer in zip(bookies, answers, strict=True)
    }
    chosen = [bookie for bookie in bookies if bookie in writable]
    capped = dict(zip(chosen, shares([free[one] for one in chosen], multiple, cap), strict=True))
    total_free, total_capped = sum(free[one] for one in chosen) or 1, sum(capped.values()) or 1.0
    rows: list[dict[str, Any]] = []
    for bookie, answer in zip(bookies, answers, strict=True):
        if isinstance(answer, str):
            nothing = dict.fromkeys(("free", "total", "weight", "capped"))
            rows.append({"bookie": bookie, **nothing, "state": f"failed: {answer}"})
            continue
        row = {"bookie": bookie, "free": Bytes(free[bookie]), "total": Bytes(answer.total)}
        if bookie in writable:
            rows.append(
                {**row, "weight": free[bookie] / total_free, "capped": capped[bookie] / total_capped, "state": "ok"}
            )
        else:
            rows.append({**row, "weight": None, "capped": None, "state": "read-only"})
    failed = sum(isinstance(one, str) for one in answers)
    total = sum(one.total for one in answers if not isinstance(one, str))
    show(output, "bookies", rows, free=Bytes(sum(free.values())), total=Bytes(total), failed=failed)
    if failed:
        context.exit(EXIT_PARTIAL)
