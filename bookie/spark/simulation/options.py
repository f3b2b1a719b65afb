"""The options of `bkpipe simulate-placement`, and the scenarios that they describe."""

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
    click.option("--bookies", type=click.IntRange(1), default=1000, show_default=True,
                 help="Number of bookies at the start."),
    click.option("--racks", type=click.IntRange(1), default=20, show_default=True,
                 help="Number of racks, to which bookies are assigned in turn."),
    click.option("--disks", default="4t", show_default=True, metavar="BYTES,...",
                 help="Disk sizes, which are assigned to bookies in turn."),
    click.option("--filled", default="0.4-0.6", show_default=True, metavar="MIN-MAX",
                 help="Used share of the disks at the start, spread evenly."),
    click.option("--full-at", type=click.FloatRange(0.01, 1), default=0.95, show_default=True,
                 help="Used share of a disk at which its bookie becomes read-only."),
    click.option("--add", "growth", multiple=True, metavar="N@SHARE",
                 help="N empty bookies join when this share of the ledgers is written. May be repeated."),
    click.option("--ledgers", type=click.IntRange(1), default=10_000_000, show_default=True,
                 help="Most ledgers to write."),
    click.option("--ledger-bytes", metavar="BYTES",
                 help="Mean size of a ledger.  [default: such that all disks fill up]"),
    click.option("--spread", type=click.FloatRange(0, 5), default=1.0, show_default=True,
                 help="Standard deviation of the logarithm of ledger sizes."),
    click.option("--ingest", metavar="BYTES",
                 help="Bytes written per second, before replication.  [default: 2m per bookie]"),
    click.option("--retention", metavar="SPAN",
                 help="Age at which ledgers are deleted, such as 36h or 3d.  [default: never]"),
    click.option("--ensemble", type=click.IntRange(1), default=3, show_default=True, help="Ensemble size."),
    click.option("--write-quorum", type=click.IntRange(1), default=3, show_default=True,
                 help="Number of replicas of each entry."),
    click.option("--policy", "policies", multiple=True, type=click.Choice(("default", "rack", "region", "zone")),
                 default=("rack",), show_default=True,
                 help="Placement policy; repeat it to compare. region and zone take 40 to 300 us per ledger."),
    click.option("--weights", multiple=True, default=("uniform", "median:3", "min:3", "uncapped"), show_default=True,
                 metavar="KIND",
                 help="How free space counts: uniform, uncapped, or capped at a multiple (median:N, min:N)."
                 " With +load:N, load counts as well, as in median:3+load:0.5. Repeat it to compare."),
    click.option("--poll", default="1h", show_default=True, metavar="SPAN",
                 help="How often clients poll the free space; Apache BookKeeper's default is 1d."),
    click.option("--seeds", type=click.IntRange(1), default=1, show_default=True,
                 help="Number of runs of each scenario, with seeds from --seed on."),
    click.option("--seed", type=int, default=1, show_default=True, help="The first seed."),
)  # fmt: skip


def with_scenarios(function: Callable[..., int]) -> Callable[..., int]:
    """Add the options that describe the scenarios; the command receives them by name and passes them to `scenarios`."""
    for option in reversed(OPTIONS):
        function = option(function)
    return function


def number_of(text: str, units: dict[str, int]) -> float:
    """Parse a number with a unit, such as `4t` or `1.5d`.

    Raises:
        IncorrectParameter: the text is not such a number.
    """
    scale = units.get(text[-1:].lower(), 1)
    try:
        found = float(text[:-1] if text[-1:].lower() in units else text) * scale
    except ValueError:
        found = -1.0
    if found < 0:
        raise IncorrectParameter(f"{text!r} is not a number followed by one of {', '.join(units)}")
    return found


def growth_of(text: str) -> "Growth":
    """Parse `50@0.5`.

    Raises:
        IncorrectParameter: the text has another form, or a number is out of range.
    """
    from bookie.spark.simulation.scenario import Growth  # noqa: PLC0415

    count, at, after = text.partition("@")
    try:
        found = Growth(int(count), float(after) if at else 0.5)
    except ValueError:
        found = Growth(0, 0.0)
    if found.bookies < 1 or not 0 <= found.after <= 1:
        raise IncorrectParameter(
            f"--add {text!r}: must be the number of bookies, @, and the share of ledgers written before, such as 50@0.5"
        )
    return found


def scenarios(given: Mapping[str, Any]) -> Iterator["Scenario"]:
    """Yield a scenario for each combination of policy, weights and seed.

    Raises:
        IncorrectParameter: an option is invalid.
    """
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
        raise IncorrectParameter(
            f"--filled {given['filled']}: must be shares from 0 to 1, the smaller one first, such as 0.4-0.6"
        )
    ensemble, quorum = given["ensemble"], given["write_quorum"]
    if quorum > ensemble:
        raise IncorrectParameter(f"--write-quorum {quorum}: must not exceed the ensemble size {ensemble}")
    disks = topology.disks()
    filled = (topology.filled_min + topology.filled_max) / 2 * disks[: topology.bookies].sum()
    room = float(disks.sum()) * topology.full_at - float(filled)
    mean = number_of(given["ledger_bytes"], UNITS) if given["ledger_bytes"] else room / quorum / given["ledgers"]
    ingest = number_of(given["ingest"], UNITS) if given["ingest"] else 2e6 * topology.bookies
    poll = number_of(given["poll"], SPANS)
    if min(mean, ingest, poll) <= 0:
        raise IncorrectParameter(
            "--ledger-bytes, --ingest and --poll must be above 0, and the disks must have free space"
        )
    retention = number_of(given["retention"], SPANS) if given["retention"] else 0.0
    load = Load(given["ledgers"], mean, given["spread"], ingest, ensemble, quorum, retention)
    weights = [Weights.parse(one) for one in given["weights"]]
    for policy in given["policies"]:
        for weight in weights:
            for seed in range(given["seed"], given["seed"] + given["seeds"]):
                yield Scenario(topology, load, policy, weight, poll, seed)
