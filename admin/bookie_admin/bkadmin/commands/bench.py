"""`bkadmin bench`: generate load and report rates and latencies."""

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from bookie.terminal.lazy import EXIT_PARTIAL
from bookie.terminal.output import progress_bar, show
from bookie_admin.bkadmin.options import ID, Cluster, Seconds, with_cluster, with_output
from bookie_admin.bkadmin.scratch import scratch

if TYPE_CHECKING:
    from bookie.client import BookKeeper

WORKLOADS = ("add", "read", "batch")


@click.command()
@click.option(
    "-t", "--workload", "workloads", type=click.Choice(WORKLOADS), multiple=True, default=WORKLOADS, show_default=True,
    help="Workload to run; may be repeated. They run one after the other.",
)  # fmt: skip
@click.option("-d", "--duration", "duration_s", type=Seconds(), default=10.0, show_default=True,
              metavar="SECONDS", help="Duration of each part of a workload.")  # fmt: skip
@click.option("-s", "--entry-size", "size", type=click.IntRange(min=1), default=1024, show_default=True,
              help="Payload of an entry, in bytes.")  # fmt: skip
@click.option("-l", "--ledgers", "count", type=click.IntRange(1, 10_000), default=1, show_default=True,
              help="Number of ledgers to write and read.")  # fmt: skip
@click.option("--outstanding", type=click.IntRange(1, 1_000_000), default=10_000, show_default=True,
              help="Maximum number of added entries that are not acknowledged, over all ledgers.")  # fmt: skip
@click.option("--batch", "batch_count", type=click.IntRange(min=1), default=100, show_default=True,
              help="Number of entries in a batch.")  # fmt: skip
@click.option("-e", "--ensemble", type=click.IntRange(min=1), default=3, show_default=True, help="Ensemble size.")
@click.option("-w", "--write-quorum", type=click.IntRange(min=1), default=3, show_default=True,
              help="Number of bookies that store each entry.")  # fmt: skip
@click.option("-a", "--ack-quorum", type=click.IntRange(min=1), default=2, show_default=True,
              help="Number of bookies that must acknowledge each add.")  # fmt: skip
@click.option("--digest", type=click.Choice(("CRC32C", "CRC32", "HMAC", "DUMMY")), default="CRC32C", show_default=True,
              help="Digest type of the ledgers.")  # fmt: skip
@click.option("--v2", is_flag=True, help="Use protocol V2 instead of V3.")
@click.option("--keep", is_flag=True, help="Do not delete the ledgers at the end.")
@click.option(
    "--read-ledger",
    "given",
    type=ID,
    multiple=True,
    help="Read this ledger instead of writing new ones; may be repeated.",
)
@with_cluster
@with_output
@click.pass_context
def command(context: click.Context, /, **options: Any) -> None:
    """Generate load and report rates and latencies, against bookies of this project or of Apache BookKeeper.

    Each workload has two parts. `entries_per_s` and `mb_per_s` are what the cluster can do: entries are added by
    append_all, read by ranges of single reads, and read in batches that are read ahead. `awaited_per_s` and the
    latencies are those of calls that a program awaits one after the other: append, read of an entry at a random place,
    and batch_read.

    All of it runs in one thread of one process: with fast disks and a fast network this client may be the bottleneck.
    Reads are mostly served from the bookies' caches, because the entries have just been written. The exit code is 3
    when an error ended a workload.
    """
    output = options.pop("output")
    ledgers, rows = bench(**options)
    show(output, "workloads", rows, ledgers=ledgers)
    if any("error" in row for row in rows):
        context.exit(EXIT_PARTIAL)


def bench(
    *, cluster: Cluster, workloads: tuple[str, ...], given: tuple[int, ...], keep: bool, v2: bool, **options: Any
) -> tuple[list[int], list[dict[str, Any]]]:
    """Run the workloads; return the ids of the ledgers that remain and a row for each workload."""
    from bookie.client import BookKeeper  # noqa: PLC0415
    from bookie.client.config import ClientConfig  # noqa: PLC0415

    options["window"] = max(1, options.pop("outstanding") // options["count"])
    settings = {**cluster.client, "useV2WireProtocol": v2, "maxOutstandingAdds": options["window"]}
    frame = ClientConfig.of(settings).frame_bytes_max
    if options["size"] > frame:
        raise click.UsageError(
            f"--entry-size {options['size']}: an entry must fit into a frame of {frame} bytes; lower it, or raise"
            " nettyMaxFrameSizeBytes of the client (--conf or --profile) and of the bookies"
        )
    with BookKeeper(cluster.service_uri, **settings) as bk:
        if given:
            return list(given), reads(bk, list(given), workloads, options)
        with scratch(bk, keep=keep) as made:
            rows = [adds(bk, made, options)]
            if "error" not in rows[0]:
                rows += reads(bk, made, workloads, options)
    return made, rows if "add" in workloads else rows[1:]


def adds(bk: "BookKeeper", made: list[int], options: dict[str, Any]) -> dict[str, Any]:
    """Create ledgers and append their ids to `made`; write to them, close them, and return the row."""
    from bookie_admin.bkadmin.loading import Run, add  # noqa: PLC0415

    with progress_bar("add") as bar, ExitStack() as opened:
        run = Run("add", options["duration_s"], bar)
        handles = []
        for _ in range(options["count"]):
            new = bk.create_ledger(
                ensemble_size=options["ensemble"],
                write_quorum_size=options["write_quorum"],
                ack_quorum_size=options["ack_quorum"],
                digest_type=options["digest"],
            )
            handles.append(opened.enter_context(new))
            made.append(handles[-1].id)
        add(run, handles, size=options["size"], window=options["window"])
    return run.row()


def reads(
    bk: "BookKeeper", ledgers: list[int], workloads: tuple[str, ...], options: dict[str, Any]
) -> list[dict[str, Any]]:
    """Run the read workloads on closed ledgers and return a row for each; ledgers without entries are skipped."""
    from bookie_admin.bkadmin.loading import Run, batch, read  # noqa: PLC0415

    rows = []
    with ExitStack() as opened:
        found = [opened.enter_context(bk.open_ledger(one, password=None, recovery=False)) for one in ledgers]
        handles = [one for one in found if one.last_add_confirmed >= 0]
        for name in workloads:
            if name == "add" or not handles:
                continue
            with progress_bar(name) as bar:
                run = Run(name, options["duration_s"], bar)
                if name == "read":
                    read(run, handles)
                else:
                    batch(run, handles, count=options["batch_count"])
            rows.append(run.row())
    return rows
