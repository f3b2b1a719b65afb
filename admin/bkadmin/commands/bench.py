"""`bkadmin bench`."""

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import click

from admin.bkadmin.options import ID, Cluster, Seconds, with_cluster, with_output
from admin.bkadmin.scratch import scratch
from bookie.terminal.lazy import EXIT_PARTIAL
from bookie.terminal.output import progress_bar, show

if TYPE_CHECKING:
    from bookie.client.aio import BookKeeper

WORKLOADS = ("add", "read", "batch")


@click.command()
@click.option(
    "-t", "--workload", "workloads", type=click.Choice(WORKLOADS), multiple=True, default=WORKLOADS, show_default=True,
    help="What to drive, one after the other; several times.",
)  # fmt: skip
@click.option("-d", "--duration", "duration_s", type=Seconds(), default=10.0, show_default=True,
              metavar="SECONDS", help="Of each.")  # fmt: skip
@click.option("-s", "--entry-size", "size", type=click.IntRange(min=1), default=1024, show_default=True, help="Bytes.")
@click.option("-l", "--ledgers", "count", type=click.IntRange(1, 10_000), default=1, show_default=True)
@click.option("--outstanding", type=click.IntRange(1, 100_000), default=100, show_default=True,
              help="Requests without an answer, over all ledgers.")  # fmt: skip
@click.option("--batch", "batch_count", type=click.IntRange(min=1), default=100, show_default=True,
              help="Entries a batch read asks for.")  # fmt: skip
@click.option("-e", "--ensemble", type=click.IntRange(min=1), default=3, show_default=True)
@click.option("-w", "--write-quorum", type=click.IntRange(min=1), default=3, show_default=True)
@click.option("-a", "--ack-quorum", type=click.IntRange(min=1), default=2, show_default=True)
@click.option("--digest", type=click.Choice(("CRC32C", "CRC32", "HMAC", "DUMMY")), default="CRC32C", show_default=True)
@click.option("--v2", is_flag=True, help="Speak protocol V2 to the bookies; else V3.")
@click.option("--keep", is_flag=True, help="Leave the ledgers; else they are deleted.")
@click.option("--read-ledger", "given", type=ID, multiple=True, help="Read this ledger, add nothing.")
@with_cluster
@with_output
@click.pass_context
def command(context: click.Context, /, **options: Any) -> None:
    """Drive load and tell rates and latencies, against any BookKeeper cluster: bookies of ours or of Apache BookKeeper.

    What is measured is this client, in one process, on this cluster: on one fast connection the client may be what is
    slower. Reads find what was just written in the bookies' caches. The exit code is 3 when an error ended a workload.
    """
    output = options.pop("output")
    ledgers, rows = asyncio.run(bench(**options))
    show(output, "workloads", rows, ledgers=ledgers)
    if any("error" in row for row in rows):
        context.exit(EXIT_PARTIAL)


async def bench(
    *, cluster: Cluster, workloads: tuple[str, ...], given: tuple[int, ...], keep: bool, v2: bool, **options: Any
) -> tuple[list[int], list[dict[str, Any]]]:
    """The ledgers that are left, and a row for each workload."""
    from bookie.client.aio import BookKeeper  # noqa: PLC0415

    async with BookKeeper(cluster.service_uri, useV2WireProtocol=v2, **cluster.waits) as bk:
        if given:
            return list(given), await reads(bk, list(given), workloads, options)
        async with scratch(bk, keep=keep) as made:
            rows = [await adds(bk, made, options)]
            if "error" not in rows[0]:
                rows += await reads(bk, made, workloads, options)
    return made, rows if "add" in workloads else rows[1:]


async def adds(bk: "BookKeeper", made: list[int], options: dict[str, Any]) -> dict[str, Any]:
    """Write new ledgers, whose ids are added to `made`, and close them."""
    from admin.bkadmin.loading import Run, add  # noqa: PLC0415

    with progress_bar("adding") as bar:
        run = Run("add", options["duration_s"], bar)
        async with AsyncExitStack() as opened:
            handles = []
            for _ in range(options["count"]):
                new = bk.create_ledger(
                    ensemble_size=options["ensemble"],
                    write_quorum_size=options["write_quorum"],
                    ack_quorum_size=options["ack_quorum"],
                    digest_type=options["digest"],
                )
                handle = await opened.enter_async_context(new)
                made.append(handle.id)
                handles.append(handle)
            await add(run, handles, size=options["size"], outstanding=options["outstanding"])
    return run.row()


async def reads(
    bk: "BookKeeper", ledgers: list[int], workloads: tuple[str, ...], options: dict[str, Any]
) -> list[dict[str, Any]]:
    """Of closed ledgers; those without an entry are passed over."""
    from admin.bkadmin.loading import Run, batch, read  # noqa: PLC0415

    rows = []
    async with AsyncExitStack() as opened:
        found = [
            await opened.enter_async_context(bk.open_ledger(one, password=None, recovery=False)) for one in ledgers
        ]
        handles = [one for one in found if one.last_add_confirmed >= 0]
        for name in workloads:
            if name == "add" or not handles:
                continue
            with progress_bar(name) as bar:
                run = Run(name, options["duration_s"], bar)
                if name == "read":
                    await read(run, handles, outstanding=options["outstanding"])
                else:
                    lanes = max(1, options["outstanding"] // options["batch_count"])
                    await batch(run, handles, outstanding=lanes, count=options["batch_count"])
            rows.append(run.row())
    return rows
