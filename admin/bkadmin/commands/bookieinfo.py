"""`bkadmin bookieinfo`: show free space and placement weight of every writable bookie."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import click

from admin.bkadmin.options import Cluster, with_cluster, with_output
from admin.bookie_calls import space
from bookie.terminal.lazy import EXIT_PARTIAL
from bookie.terminal.output import Bytes, show

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
    """Show the free space of every writable bookie and the weight that it gives the bookie in placement.

    `weight` is the bookie's share of all free space. `capped` is the share after capping, which is the probability
    that weighted placement chooses the bookie first. A bookie that does not answer is listed as failed, and the exit
    code is 3.
    """
    from bookie.client.placement.weights import shares  # noqa: PLC0415

    with cluster.open() as driver:
        bookies = sorted(driver.bookies.present(read_only=False))
        with ThreadPoolExecutor(max(1, min(len(bookies), AT_A_TIME))) as pool:
            answers = list(pool.map(lambda one: space(driver, one, cluster.timeout_s), bookies))
    free = [0 if isinstance(one, str) else one.free for one in answers]
    capped = shares(free, multiple, cap)
    total_free, total_capped = sum(free) or 1, sum(capped) or 1.0
    rows: list[dict[str, Any]] = []
    for bookie, answer, mine, share in zip(bookies, answers, free, capped, strict=True):
        if isinstance(answer, str):
            nothing = dict.fromkeys(("free", "total", "weight", "capped"))
            rows.append({"bookie": bookie, **nothing, "state": f"failed: {answer}"})
            continue
        row = {"bookie": bookie, "free": Bytes(mine), "total": Bytes(answer.total)}
        rows.append({**row, "weight": mine / total_free, "capped": share / total_capped, "state": "ok"})
    failed = sum(isinstance(one, str) for one in answers)
    total = sum(one.total for one in answers if not isinstance(one, str))
    show(output, "bookies", rows, free=Bytes(sum(free)), total=Bytes(total), failed=failed)
    if failed:
        context.exit(EXIT_PARTIAL)
