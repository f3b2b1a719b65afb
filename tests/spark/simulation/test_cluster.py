"""A simulated cluster: invariants for all parameters, and the effect of weights."""

from dataclasses import replace
from typing import Any

import pytest

from bookie.errors import IncorrectParameter
from bookie.spark.simulation.cluster import simulate
from bookie.spark.simulation.scenario import Growth, Load, Scenario, Topology, Weights

DISK = 10**12
TOPOLOGY = Topology(60, 6, (DISK,), 0.2, 0.6, 0.9, (Growth(6, 0.5),))
LOAD = Load(60_000, 66 * 0.9 * DISK / 3 / 60_000 * 0.6, 1.0, 1e9, 3, 3)


def run(weights: str, *, policy: str = "rack", topology: Topology = TOPOLOGY, load: Load = LOAD) -> Any:
    """Run one scenario."""
    return simulate(Scenario(topology, load, policy, Weights.parse(weights), LOAD.duration_s / 50, 1))


def test_weights_fill_a_cluster_evenly() -> None:
    """With weights the first bookie is full later, when all others are fuller, and bookies that joined receive more."""
    uniform, median, least, uncapped = (run(one) for one in ("uniform", "median:3", "min:3", "uncapped"))
    assert uniform["filled_at_first_full"] + 0.02 < median["filled_at_first_full"]
    assert uniform["first_full_day"] < median["first_full_day"]
    assert median["spread_at_end"] < uniform["spread_at_end"]
    assert uniform["joined_over_old"] < 1.5 < least["joined_over_old"] <= uncapped["joined_over_old"]
    assert median["joined_over_old"] <= uncapped["joined_over_old"]
    again = run("median:3")
    assert again == median


def test_load_is_spread_by_weights_of_load() -> None:
    """With load from others at every tenth bookie, weights of load even it out, and disks are still filled evenly."""
    topology, load = replace(TOPOLOGY, growth=()), replace(LOAD, background=2.0)
    uniform, space, both = (
        run(one, topology=topology, load=load) for one in ("uniform", "median:3", "median:3+load:1")
    )
    assert both["load_spread"] < 0.9 * space["load_spread"]
    assert both["busiest"] < 0.9 * space["busiest"]
    assert both["spread_at_end"] < uniform["spread_at_end"]


def test_bytes_are_conserved() -> None:
    """The disks have exactly what was written: two copies over four bookies."""
    topology = replace(TOPOLOGY, filled_min=0.0, filled_max=0.0, growth=())
    load = Load(10_000, 1e9, 0.0, 1e9, 4, 2)
    reported = run("median:3", topology=topology, load=load)
    assert reported["ledgers"] == 10_000
    assert reported["filled_at_end"] == pytest.approx(10_000 * 1e9 * 2 / (60 * DISK))


def test_what_expires_makes_room() -> None:
    """With retention the used space stays constant, and no bookie becomes full."""
    load = replace(LOAD, ledgers=30_000, retention_s=LOAD.duration_s / 20)
    topology = replace(TOPOLOGY, filled_min=0.0, filled_max=0.0, growth=())
    reported = run("median:3", topology=topology, load=load)
    filled = [row["filled"] for row in reported["course"]]
    assert reported["first_full_day"] is None
    assert max(filled[10:]) < 1.2 * min(filled[10:])


def test_a_cluster_that_is_full_says_so() -> None:
    """The run ends when a ledger finds too few bookies, and reports the day."""
    reported = run("uniform", policy="default", load=replace(LOAD, ledger_bytes=LOAD.ledger_bytes * 3))
    assert reported["out_of_bookies_day"] == reported["days"]
    assert reported["ledgers"] < LOAD.ledgers


@pytest.mark.parametrize("policy", ["region", "zone"])
def test_policies_that_are_asked_one_by_one(policy: str) -> None:
    """Policies without bulk placement work too."""
    assert run("median:3", policy=policy, load=replace(LOAD, ledgers=300))["ledgers"] == 300


@pytest.mark.parametrize("text", ["median", "min:0", "max:3", "median:x", ""])
def test_weights_that_are_none(text: str) -> None:
    """The error has the value and the valid ones."""
    with pytest.raises(IncorrectParameter, match="uniform, uncapped, median:N or min:N"):
        Weights.parse(text)
