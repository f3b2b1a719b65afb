"""Region-aware placement, compared with checkers that try everything, on small clusters."""

from collections import Counter
from itertools import combinations
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bookie.client.config import ClientConfig
from bookie.client.contracts import Adherence
from bookie.client.features import Features
from bookie.client.placement.locations import Locations
from bookie.client.placement.region import RegionPlacement
from bookie.errors import ConfigurationError, NotEnoughBookies, QuorumError
from tests.client.placement.clusters import BOOKIES, FREE, QUORUMS, Clock, Table, placed_by, windows
from tests.fixtures.draws import examples

DEFAULT = "/default-region/default-rack"
PLACES = ["/x/1", "/x/2", "/y/1", "/y/2", "/z/1", DEFAULT]
CLUSTERS = st.dictionaries(st.sampled_from(BOOKIES), st.sampled_from(PLACES))


def region(place: str) -> str:
    """Return the first component of a location."""
    return place.split("/")[1]


def regional(places: dict[str, str], **settings: Any) -> RegionPlacement:
    """Return a policy over these locations."""
    return placed_by(RegionPlacement, places, DEFAULT, **settings)


def durable(regions: list[str], write_quorum: int, ack_quorum: int, least: int) -> bool:
    """Return whether no `least - 1` regions hold an ack quorum of a write quorum, by trying all."""
    for window in windows(regions, write_quorum):
        held = Counter(window)
        for lost in combinations(held, min(least - 1, len(held))):
            if sum(held[one] for one in lost) >= ack_quorum:
                return False
    return True


@settings(max_examples=examples(80), deadline=None)
@given(
    places=CLUSTERS,
    quorums=QUORUMS,
    rules=st.fixed_dictionaries(
        {
            "racks_min": st.integers(1, 2),
            "weighted_placement": st.booleans(),
            "regions": st.sampled_from(["", "x;y;z"]),
            "regions_durable_min": st.integers(-1, 3),
        }
    ),
    free=FREE,
    excluded=st.frozensets(st.sampled_from(BOOKIES), max_size=3),
    read_only=st.frozensets(st.sampled_from(BOOKIES), max_size=2),
    local=st.sampled_from(PLACES),
)
def test_ensembles_outlive_regions(
    places: dict[str, str],
    quorums: tuple[int, int, int],
    rules: dict[str, Any],
    free: dict[str, int],
    excluded: frozenset[str],
    read_only: frozenset[str],
    local: str,
) -> None:
    """Bookies are distinct, writable and not excluded; with durability, too few regions never hold an ack quorum."""
    size, write_quorum, ack_quorum = quorums
    placement = regional(places, local=local, **rules)
    placement.weights_changed(free)
    placement.bookies_changed(frozenset(places), read_only)
    candidates = set(places) - read_only - excluded
    least = placement.durable_regions
    if least and (ack_quorum < least or ack_quorum <= write_quorum - write_quorum // least):
        with pytest.raises(QuorumError):
            placement.new_ensemble(size, write_quorum, ack_quorum, excluded=excluded)
        return
    try:
        ensemble = placement.new_ensemble(size, write_quorum, ack_quorum, excluded=excluded)
    except NotEnoughBookies:
        assert least > 1 or len(candidates) < size
        return
    assert len(set(ensemble)) == len(ensemble) == size
    assert candidates.issuperset(ensemble)
    regions = [region(places[bookie]) for bookie in ensemble]
    assert least <= 1 or durable(regions, write_quorum, ack_quorum, least)
    assert placement.adheres(ensemble, write_quorum, ack_quorum) is Adherence.MEETS_STRICT


@given(
    places=CLUSTERS,
    ensemble=st.lists(st.sampled_from(BOOKIES), min_size=3, max_size=3, unique=True),
    excluded=st.frozensets(st.sampled_from(BOOKIES), max_size=2),
    index=st.integers(0, 2),
    regions=st.sampled_from(["", "x;y;z"]),
)
def test_a_replacement_is_near_or_keeps_what_must_be_outlived(
    places: dict[str, str], ensemble: list[str], excluded: frozenset[str], index: int, regions: str
) -> None:
    """A replacement is of the same rack, or else the same region, or else any that durability allows."""
    placement = regional(places, regions=regions)
    homes = [places.get(bookie, DEFAULT) for bookie in ensemble]
    candidates = set(places) - set(ensemble) - excluded
    rack = {bookie for bookie in candidates if places[bookie] == homes[index]}
    near = {bookie for bookie in candidates if region(places[bookie]) == region(homes[index])}
    others = [region(home) for number, home in enumerate(homes) if number != index]
    anomalous = not regions or len(set(others)) < 2
    far = {bookie for bookie in candidates if anomalous or region(places[bookie]) not in others}
    allowed = rack or near or far
    if allowed:
        assert placement.replacement(3, 2, ensemble, index, excluded=excluded) in allowed
    else:
        with pytest.raises(NotEnoughBookies):
            placement.replacement(3, 2, ensemble, index, excluded=excluded)


THREE = {f"{name}{rack}{number}": f"/{name}/{rack}" for name in "xyz" for rack in (1, 2) for number in (1, 2)}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("size", "counts"), [(3, [1, 1, 1]), (4, [2, 1, 1]), (6, [2, 2, 2]), (2, [1, 1])])
def test_regions_share_evenly_and_take_turns(size: int, counts: list[int], *, weighted: bool) -> None:
    """Regions share an ensemble evenly, and racks differ within a region, however much space one region has."""
    placement = regional(THREE, weighted_placement=weighted, weight_multiple_max=0)
    placement.weights_changed({bookie: 1000 if bookie.startswith("x") else 1 for bookie in THREE})
    shares: Counter[str] = Counter()
    for _ in range(60):
        ensemble = placement.new_ensemble(size, 2, 2)
        found = Counter(region(THREE[bookie]) for bookie in ensemble)
        assert sorted(found.values(), reverse=True) == counts
        assert len({THREE[bookie] for bookie in ensemble}) == size
        shares += found
    assert set(shares.values()) == {size * 20}


def test_the_own_region_comes_first() -> None:
    """The client's region comes first, also for the odd bookie."""
    placement = regional(THREE, local="/y/1")
    for _ in range(20):
        ensemble = placement.new_ensemble(4, 2, 2)
        assert THREE[ensemble[0]] == "/y/1"
        assert Counter(region(THREE[bookie]) for bookie in ensemble)["y"] == 2


def test_what_a_region_cannot_give_the_others_do() -> None:
    """The other regions fill in, one after the other, until the ensemble is complete."""
    places = {"x1": "/x/1", **{f"y{n}": f"/y/{n}" for n in range(4)}, **{f"z{n}": f"/z/{n}" for n in range(4)}}
    placement = regional(places)
    for _ in range(20):
        ensemble = placement.new_ensemble(7, 3, 2)
        counts = Counter(region(places[bookie]) for bookie in ensemble)
        assert counts["x"] == 1
        assert sorted((counts["y"], counts["z"])) in ([2, 4], [3, 3])
    with pytest.raises(NotEnoughBookies):
        placement.new_ensemble(10, 3, 2)


def test_reads_look_at_another_region_early() -> None:
    """Another region follows two local replicas; if the client's region is unknown, the order does not change."""
    ensemble = ["x11", "x12", "x21", "y11"]
    assert list(regional(THREE, local="/x/1").read_order(ensemble, [0, 1, 2, 3], len)) == [0, 1, 3, 2]
    assert list(regional(THREE, local="/y/1").read_order(ensemble, [0, 1, 2, 3], len)) == [3, 0, 1, 2]
    assert list(regional(THREE).read_order(ensemble, [2, 0, 3, 1], len)) == [2, 0, 3, 1]


def test_too_few_regions_to_write_to() -> None:
    """Fewer regions than durability demands are an error."""
    config = ClientConfig(regions="x;y", regions_durable_min=3)
    with pytest.raises(ConfigurationError, match="reppMinimumRegionsForDurability=3"):
        RegionPlacement(config, Random(1), Clock(), Locations(Table({}), DEFAULT), DEFAULT)


def test_features_of_regions() -> None:
    """A region can be disallowed, and durability switched off, for later choices."""
    features = Features()
    rules: dict[str, Any] = {"regions": "x;y;z", "regions_disallow_feature": "closed"}
    locations = Locations(Table(THREE), DEFAULT, lambda bookie: bookie)
    placement = RegionPlacement(ClientConfig(**rules), Random(1), Clock(), locations, DEFAULT, features)
    placement.bookies_changed(frozenset(THREE), frozenset())

    def regions() -> set[str]:
        return {region(THREE[bookie]) for bookie in placement.new_ensemble(3, 3, 3)}

    assert regions() == {"x", "y", "z"}
    features.switch("y.closed", on=True)
    assert regions() == {"x", "z"}
    features.switch("x.closed", on=True)
    with pytest.raises(NotEnoughBookies):
        regions()
    features.switch("repp_disable_durability_enforcement", on=True)
    assert regions() == {"z"}
    features.switch("y.closed", on=False)
    assert regions() == {"y", "z"}
