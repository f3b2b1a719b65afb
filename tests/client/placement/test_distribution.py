"""How often each bookie is chosen, compared with the rule: chi-square tests over many draws with fixed seeds.

The rule is computed here once more, from the candidates that a policy must weigh against each other: a weight is the
free space, or the smallest known one, and at most three times the median of the candidates.
"""

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Mapping
from random import Random
from statistics import median
from typing import Any

import pytest

from bookie.client.config import ClientConfig
from bookie.client.placement.base import Policy
from bookie.client.placement.factory import placement_for
from tests.client.placement.clusters import placed
from tests.client.placement.test_region import regional
from tests.client.placement.test_zone import zoned

DRAWS = 5_000
FREE = dict(zip("abcdefghijkl", (40, 100, 130, 160, 900, 0, 210, 70, 5000, 90, 110, 60), strict=True))
"""One size is unknown, and two are above every cap."""
RACKS = {bookie: f"/r{at % 3}" for at, bookie in enumerate(FREE)}
"""Three racks, with the bookies a, d, g, j; b, e, h, k; and c, f, i, l."""
REGIONS = {bookie: f"/{'xy'[at % 2]}/r{at % 4 // 2}" for at, bookie in enumerate(FREE)}
"""Region x has the racks aei and cgk, region y bfj and dhl."""
ZONES = {bookie: f"/{'xyz'[at % 3]}/d{at % 2}" for at, bookie in enumerate(FREE)}
"""adgj, behk, cfil; each zone has two upgrade domains."""


def chances(candidates: Collection[str], *, without: Collection[str] = ()) -> dict[str, float]:
    """Return the chances by the rule, of those candidates that are not in `without`."""
    free = [FREE[one] for one in candidates]
    low, cap = min(one for one in free if one), 3 * median(free)
    weights = {one: min(FREE[one] or low, cap) for one in candidates if one not in without}
    return {one: weight / sum(weights.values()) for one, weight in weights.items()}


def squares(counts: Mapping[Any, int], expected: Mapping[Any, float]) -> float:
    """Return how far the counts are from what is expected, in standard deviations of the chi-square distribution."""
    total = sum(counts.values())
    assert counts.keys() <= expected.keys(), "somebody was chosen who is no candidate"
    found = sum((counts[one] - total * chance) ** 2 / (total * chance) for one, chance in expected.items())
    freedom = len(expected) - 1
    return float((found - freedom) / (2 * freedom) ** 0.5)


def follows(choose: Callable[[], Hashable], expected: Mapping[Any, float]) -> None:
    """Fail unless draws follow these chances, and can be told from equal ones."""
    counts = Counter(choose() for _ in range(DRAWS))
    assert squares(counts, expected) < 5, (counts, expected)
    assert squares(counts, dict.fromkeys(expected, 1 / len(expected))) > 20, "the test tells nothing"


def anywhere() -> Policy:
    """Return the policy without locations."""
    config = ClientConfig(placement_policy="default", weighted_placement=True)
    policy = placement_for(config, Random(3), float)
    policy.bookies_changed(frozenset(FREE), frozenset())
    assert isinstance(policy, Policy)
    return policy


def known(policy: Policy) -> Policy:
    """Tell a policy the free space, as the poll does: nothing of a bookie that does not answer."""
    policy.weights_changed({bookie: free for bookie, free in FREE.items() if free})
    return policy


def test_replacements_anywhere() -> None:
    """The default policy weighs all writable bookies, and never takes a member of the ensemble."""
    policy = known(anywhere())
    follows(lambda: policy.replacement(3, 2, ["a", "g", "i"], 0), chances(FREE, without="agi"))


def test_replacements_in_the_same_rack() -> None:
    """The rack-aware policy weighs the bookies of the lost one's rack against each other only."""
    policy = known(placed(RACKS, weighted_placement=True, seed=3))
    follows(lambda: policy.replacement(3, 2, ["a", "b", "c"], 1), chances("behk", without="b"))


def test_replacements_from_another_rack() -> None:
    """If the rack of the lost bookie has no other, the bookies of racks that are new to the ensemble are weighed."""
    policy = known(placed(RACKS, weighted_placement=True, seed=3))
    follows(lambda: policy.replacement(2, 2, ["a", "b"], 1, excluded="hek"), chances(FREE, without="adgjbehk"))


def test_replacements_in_a_zone() -> None:
    """The zone-aware policy weighs the candidates that are left in the zones of no other member."""
    policy = known(zoned(ZONES, weighted_placement=True, seed=3))
    follows(lambda: policy.replacement(3, 2, ["a", "b", "c"], 2), chances("fil"))


def test_replacements_where_zones_do_not_count() -> None:
    """Without strict zones, all candidates are weighed, and only these."""
    policy = known(zoned(ZONES, weighted_placement=True, zones_strict=False, seed=3))
    follows(lambda: policy.replacement(3, 2, ["a", "b", "c"], 2), chances("defghijkl"))


@pytest.mark.parametrize(
    ("ensemble", "excluded", "weighed", "without"),
    [
        pytest.param("ebg", "", "aei", "e", id="same rack"),
        pytest.param("ebd", "ai", "acegik", "aei", id="same region"),
        pytest.param("ebd", "acgik", "abcdefghijkl", "acegikbd", id="another region"),
    ],
)
def test_replacements_in_a_region(ensemble: str, excluded: str, weighed: str, without: str) -> None:
    """The region-aware policy weighs the lost bookie's rack, or else its region, or else all."""
    policy = known(regional(REGIONS, weighted_placement=True, seed=3))
    follows(lambda: policy.replacement(3, 2, list(ensemble), 0, excluded=excluded), chances(weighed, without=without))


@pytest.mark.parametrize("region", ["x", "y"])
def test_one_bookie_of_each_region(region: str) -> None:
    """Inside a region, its own median caps the weights, however large the disks of the other region are."""
    policy = known(regional(REGIONS, weighted_placement=True, seed=3))
    inside = [bookie for bookie, place in REGIONS.items() if place.startswith(f"/{region}/")]

    def chosen() -> str:
        (bookie,) = set(policy.new_ensemble(2, 2, 2)).intersection(inside)
        return bookie

    follows(chosen, chances(inside))


def test_two_bookies_of_each_region() -> None:
    """The first one is weighed against its region, and the second one against the region without that rack."""
    policy = known(regional(REGIONS, weighted_placement=True, seed=3))
    inside = [bookie for bookie, place in REGIONS.items() if place.startswith("/x/")]
    expected: dict[tuple[str, ...], float] = {}
    for first, chance in chances(inside).items():
        others = [one for one in inside if REGIONS[one] != REGIONS[first]]
        expected |= {(first, second): chance * then for second, then in chances(others).items()}

    def chosen() -> tuple[str, ...]:
        return tuple(bookie for bookie in policy.new_ensemble(4, 4, 3) if bookie in inside)

    follows(chosen, expected)


def test_a_new_ensemble_in_racks() -> None:
    """Each bookie is weighed against those outside the racks of the ones before it."""
    policy = known(placed(RACKS, weighted_placement=True, seed=3))
    expected: dict[tuple[str, ...], float] = {}
    for first, chance in chances(FREE).items():
        others = [one for one in FREE if RACKS[one] != RACKS[first]]
        expected |= {(first, second): chance * then for second, then in chances(others).items()}
    follows(lambda: policy.new_ensemble(2, 2, 2), expected)


def test_a_new_ensemble_in_zones() -> None:
    """Each bookie is weighed against the candidates that are left for it."""
    policy = known(zoned(ZONES, weighted_placement=True, zones_desired=3, seed=3))
    expected: dict[tuple[str, ...], float] = {}
    for first, chance in chances(FREE).items():
        others = [one for one in FREE if ZONES[one][1] != ZONES[first][1]]
        expected |= {(first, second): chance * then for second, then in chances(others).items()}
    follows(lambda: policy.new_ensemble(3, 3, 2)[:2], expected)
