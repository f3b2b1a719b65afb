"""The options of `bkpipe simulate-placement`, and the scenarios that they ask for."""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from bookie.errors import IncorrectParameter

if TYPE_CHECKING:
    from bookie.spark.simulation.scenario import Growth, Scenario

__all__ = ["scenarios", "with_scenarios"]

UNITS = {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "p": 10**15}
SPANS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
OPTIONS = (
    click.option("--bookies", type=click.IntRange(1), default=1000, show_default=True, help="At the start."),
    click.option("--racks", type=click.IntRange(1), default=20, show_default=True,
                 help="Bookies stand in them in turn."),
    click.option("--disks", default="4t", show_default=True, metavar="BYTES,...",
                 help="Disk sizes; bookies have them in turn."),
    click.option("--filled", default="0.4-0.6", show_default=True, metavar="MIN-MAX",
                 help="Used shares of disks at the start."),
    click.option("--full-at", type=click.FloatRange(0.01, 1), default=0.95, show_default=True,
                 help="Used share that makes a bookie read-only."),
    click.option("--add", "growth", multiple=True, metavar="N@SHARE",
                 help="So many empty bookies join when that share of ledgers is written. Repeat it."),
    click.option("--ledgers", type=click.IntRange(1), default=10_000_000, show_default=True,
                 help="To be written, at most."),
    click.option("--ledger-bytes", metavar="BYTES", help="Their mean.  [default: what fills all disks]"),
    click.option("--spread", type=click.FloatRange(0, 5), default=1.0, show_default=True,
                 help="Standard deviation of the logarithm of their sizes."),
    click.option("--ingest", metavar="BYTES", help="Written each second, once.  [default: 2m a bookie]"),
    click.option("--retention", metavar="SPAN", help="Ledgers go after so long, as 36h or 3d.  [default: never]"),
    click.option("--ensemble", type=click.IntRange(1), default=3, show_default=True, help="Bookies of a ledger."),
    click.option("--write-quorum", type=click.IntRange(1), default=3, show_default=True, help="Copies."),
    click.option("--policy", "policies", multiple=True, type=click.Choice(("default", "rack", "region", "zone")),
                 default=("rack",), show_default=True,
                 help="Repeat it to compare. region and zone choose one by one, in 40 to 300 us each."),
    click.option("--weights", multiple=True, default=("uniform", "median:3", "min:3", "uncapped"), show_default=True,
                 metavar="KIND",
                 help="How free space counts: uniform, uncapped, or capped by a multiple, median:N or min:N."
                 " Repeat it to compare."),
    click.option("--poll", default="1h", show_default=True, metavar="SPAN",
                 help="How often clients ask for free space; Apache BookKeeper's default is 1d."),
    click.option("--seeds", type=click.IntRange(1), default=1, show_default=True,
                 help="Runs of each, with seeds from --seed on."),
    click.option("--seed", type=int, default=1, show_default=True, help="The first one."),
)  # fmt: skip


def with_scenarios(function: Callable[..., int]) -> Callable[..., int]:
    """Options that say what to simulate; the command gets them by name, and hands them to `scenarios`."""
    for option in reversed(OPTIONS):
        function = option(function)
    return function


def number_of(text: str, units: dict[str, int]) -> float:
    """`4t`, `1.5d`. IncorrectParameter."""
    scale = units.get(text[-1:].lower(), 1)
    try:
        found = float(text[:-1] if text[-1:].lower() in units else text) * scale
    except ValueError:
        found = -1.0
    if found < 0:
        raise IncorrectParameter(f"{text!r} is no size: a number, and one of {', '.join(units)} behind it")
    return found


def growth_of(text: str) -> "Growth":
    """`50@0.5`. IncorrectParameter."""
    from bookie.spark.simulation.scenario import Growth  # noqa: PLC0415

    count, at, after = text.partition("@")
    try:
        found = Growth(int(count), float(after) if at else 0.5)
    except ValueError:
        found = Growth(0, 0.0)
    if found.bookies < 1 or not 0 <= found.after <= 1:
        raise IncorrectParameter(f"--add {text!r}: bookies @ share of the ledgers written before they join, as 50@0.5")
    return found


def scenarios(given: Mapping[str, Any]) -> Iterator["Scenario"]:
    """All runs: policies x weights x seeds. IncorrectParameter."""
    from bookie.spark.simulation.scenario import Load, Scenario, Topology, Weights  # noqa: PLC0415

    low, _, high = given["filled"].partition("-")
    topology = Topology(
        given["bookies"],
        given["racks"],
        tuple(int(number_of(one, UNITS)) for one in given["disks"].split(",")),
        number_of(low, {}),
        number_of(high or low, {}),
        given["full_at"],
        tuple(growth_of(one) for one in given["growth"]),
    )
    if not topology.filled_min <= topology.filled_max <= 1:
        raise IncorrectParameter(f"--filled {given['filled']}: shares from 0 to 1, the smaller one first, as 0.4-0.6")
    ensemble, quorum = given["ensemble"], given["write_quorum"]
    if quorum > ensemble:
        raise IncorrectParameter(f"--write-quorum {quorum} of an ensemble of {ensemble}: at most as many")
    disks = topology.disks()
    filled = (topology.filled_min + topology.filled_max) / 2 * disks[: topology.bookies].sum()
    room = float(disks.sum()) * topology.full_at - float(filled)
    mean = number_of(given["ledger_bytes"], UNITS) if given["ledger_bytes"] else room / quorum / given["ledgers"]
    ingest = number_of(given["ingest"], UNITS) if given["ingest"] else 2e6 * topology.bookies
    poll = number_of(given["poll"], SPANS)
    if min(mean, ingest, poll) <= 0:
        raise IncorrectParameter("--ledger-bytes, --ingest and --poll are above 0, and the disks have room")
    retention = number_of(given["retention"], SPANS) if given["retention"] else 0.0
    load = Load(given["ledgers"], mean, given["spread"], ingest, ensemble, quorum, retention)
    weights = [Weights.parse(one) for one in given["weights"]]
    for policy in given["policies"]:
        for weight in weights:
            for seed in range(given["seed"], given["seed"] + given["seeds"]):
                yield Scenario(topology, load, policy, weight, poll, seed)
