"""`bkadmin metrics`: show metrics by name pattern; --watch adds rates."""

from typing import TYPE_CHECKING, Any

import click

from bookie.errors import IllegalOperation
from bookie.terminal.output import Moment, show, show_again
from bookie_admin.bkadmin.admin_port import AdminPort, with_admin
from bookie_admin.bkadmin.options import Seconds

if TYPE_CHECKING:
    from bookie.pb import metrics_service_pb2 as pb

Series = dict[tuple[str, str], float]


@click.command()
@click.argument("names", nargs=-1)
@click.option(
    "--watch",
    "interval_s",
    type=Seconds(high=3600),
    metavar="SECONDS",
    help="Repeat at this interval until Ctrl-C, with the rates of counters; JSON is one line each time.",
)
@click.option(
    "-o",
    "--output",
    type=click.Choice(("table", "json", "yaml", "prometheus")),
    default="table",
    show_default=True,
    help="Output format.",
)
@click.option("--nonzero", is_flag=True, help="Leave out samples that are 0 or not measured yet.")
@with_admin
def command(
    *, names: tuple[str, ...], interval_s: float | None, output: str, nonzero: bool, admin: AdminPort
) -> None:  # fmt: skip
    """Show the metrics of a running bookie.

    NAMES are names or patterns of metric families, such as `bookie_journal_*`; without them, all families are shown.
    """
    from bookie.pb import metrics_service_pb2 as pb  # noqa: PLC0415
    from bookie.pb.metrics_service_pb2_grpc import MetricsStub  # noqa: PLC0415

    if interval_s is not None and output == "prometheus":
        raise IllegalOperation("--watch cannot be combined with -o prometheus: use -o table, json or yaml")
    with admin.open() as port:
        stub = port.stub(MetricsStub)
        if output == "prometheus":
            click.echo(port.call(stub.GetText, pb.GetMetricsRequest(names=names)).text, nl=False)
            return
        if interval_s is None:
            rows = table(port.call(stub.GetSamples, pb.GetMetricsRequest(names=names)), nonzero=nonzero)
            show(output, "metrics", rows)
            return
        before: tuple[Series, int] | None = None

        def show_samples(samples: "pb.MetricsSamples") -> None:
            nonlocal before
            rows = table(samples, before, nonzero=nonzero)
            before = series(samples), samples.at_ms
            show_again(output, "metrics", rows, at_ms=Moment(samples.at_ms))

        port.watch(stub.Watch, pb.WatchMetricsRequest(names=names, interval_ms=int(interval_s * 1000)), show_samples)


def series(samples: "pb.MetricsSamples") -> Series:
    """Return the value of each sample by its name and labels."""
    return {(one.name, labels(one)): one.value for family in samples.families for one in family.samples}


def table(
    samples: "pb.MetricsSamples", before: "tuple[Series, int] | None" = None, *, nonzero: bool = False
) -> list[dict[str, Any]]:
    """Return a row for each sample. With the samples of an earlier time in `before`, counters also get a rate per
    second.
    """
    rows = []
    for family in samples.families:
        for one in family.samples:
            if nonzero and (one.value == 0 or one.value != one.value):
                continue
            row: dict[str, Any] = {"name": one.name, "labels": labels(one), "value": one.value}
            if before is not None:
                counts = family.type == "counter" or one.name.endswith(("_count", "_sum"))
                old = before[0].get((one.name, labels(one)))
                seconds = (samples.at_ms - before[1]) / 1000
                row["per_s"] = (one.value - old) / seconds if counts and old is not None and seconds > 0 else None
            rows.append(row)
    return rows


def labels(sample: "pb.MetricSample") -> str:
    """Return the labels of a sample as one string."""
    return ",".join(f"{name}={value}" for name, value in sorted(sample.labels.items()))
