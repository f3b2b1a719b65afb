"""Ensembles chosen by the thousand are as likely as those that the policy chooses one by one."""

from collections import Counter

import numpy as np
import pytest

from bookie.client.placement.base import Policy
from bookie.client.placement.bulk import Bulk
from bookie.errors import NotEnoughBookies
from bookie.spark.simulation.scenario import Load, Scenario, Topology, Weights

BOOKIES = 24
RACKS = 6
COUNT = 12_000
TOPOLOGY = Topology(BOOKIES, RACKS, (1,), 0, 0, 1)
FREE = [0, 0, 5, *(10 * (1 + at % 4) for at in range(BOOKIES - 6)), 400, 900, 900]
"""Some sizes are unknown, and some are above every cap."""


def policy(kind: str, weights: str, racks: int = RACKS) -> Policy:
    """Return a policy that knows all bookies."""
    scenario = Scenario(TOPOLOGY, Load(1, 1, 1, 1, 3, 3), kind, Weights.parse(weights), 1, 7)
    names = [f"b{at:02}" for at in range(BOOKIES)]
    found = scenario.placement({name: f"/r{at % racks}" for at, name in enumerate(names)})
    found.bookies_changed(frozenset(names), frozenset())
    found.weights_changed(dict(zip(names, FREE, strict=True)))
    return found


@pytest.mark.parametrize("kind", ["default", "rack"])
@pytest.mark.parametrize("weights", ["uniform", "uncapped", "median:3", "min:2"])
def test_chances_are_those_of_the_policy(kind: str, weights: str) -> None:
    """By place and bookie, the two samples come from one distribution (chi-square test, fixed seeds)."""
    chosen = Bulk(policy(kind, weights), np.random.default_rng(3)).ensembles(COUNT, 3, 3)
    one_by_one = policy(kind, weights)
    counts = [Counter(column.tolist()) for column in chosen.T]
    singly = [Counter[int]() for _ in range(3)]
    for _ in range(COUNT):
        for place, bookie in enumerate(one_by_one.new_ensemble(3, 3, 2)):
            singly[place][int(bookie[1:])] += 1
    for ours, theirs in zip(counts, singly, strict=True):
        pairs = [(ours[at], theirs[at]) for at in range(BOOKIES) if ours[at] + theirs[at]]
        squares = sum((a - b) ** 2 / (a + b) for a, b in pairs)
        assert squares < len(pairs) + 5 * (2 * len(pairs)) ** 0.5, pairs


@pytest.mark.parametrize("kind", ["default", "rack"])
def test_ensembles_are_valid(kind: str) -> None:
    """No bookie is used twice, and no rack where racks count; the same seed gives the same ensembles."""
    chosen = Bulk(policy(kind, "median:3"), np.random.default_rng(5)).ensembles(2000, 5, 3)
    assert all(len(set(row)) == 5 for row in chosen.tolist())
    if kind == "rack":
        assert all(len({at % RACKS for at in row}) == 5 for row in chosen.tolist())
    assert (chosen == Bulk(policy(kind, "median:3"), np.random.default_rng(5)).ensembles(2000, 5, 3)).all()


def test_what_cannot_be_drawn_is_asked_for_one_by_one() -> None:
    """Ensembles with more bookies than racks are chosen one by one; too few bookies raise an error."""
    two = policy("rack", "median:3", racks=2)
    rows = Bulk(two, np.random.default_rng(1)).ensembles(50, 3, 3)
    assert all(len(set(row)) == 3 and len({at % 2 for at in row}) == 2 for row in rows.tolist())
    with pytest.raises(NotEnoughBookies, match=f"{BOOKIES} are writable"):
        Bulk(policy("default", "uniform"), np.random.default_rng(1)).ensembles(1, BOOKIES + 1, 3)
