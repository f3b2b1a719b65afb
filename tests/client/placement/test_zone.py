"""Zone-aware placement."""

from collections import Counter
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bookie.client.config import ClientConfig
from bookie.client.contracts import Adherence
from bookie.client.placement.locations import Locations
from bookie.client.placement.zone import ZonePlacement
from bookie.errors import ConfigurationError, NotEnoughBookies, QuorumError
from tests.client.placement.clusters import BOOKIES, FREE, Clock, Table, placed_by, windows
from tests.fixtures.draws import examples

DEFAULT = "/default-zone/default-upgradedomain"
PLACES = [f"/{zone}/{domain}" for zone in "xyz" for domain in (1, 2)]
CLUSTERS = st.dictionaries(st.sampled_from(BOOKIES), st.sampled_from([*PLACES, DEFAULT]))


def zoned(places: dict[str, str], **settings: Any) -> ZonePlacement:
    """Return a policy over these locations."""
    return placed_by(ZonePlacement, places, DEFAULT, **settings)


def judged(homes: list[str], write_quorum: int, least: int, desired: int) -> Adherence:
    """Judge an ensemble by the definition: each write quorum by itself, and the worst counts."""
    if not homes or len(homes) % write_quorum or write_quorum <= least or DEFAULT in homes:
        return Adherence.FAIL
    verdicts = []
    for window in windows(homes, write_quorum):
        zones: dict[str, list[str]] = {}
        for home in window:
            zones.setdefault(home.split("/")[1], []).append(home)
        lone = any(len(found) > 1 and len(set(found)) == 1 for found in zones.values())
        if len(zones) < least or lone:
            verdicts.append(Adherence.FAIL)
        elif len(zones) < min(write_quorum, desired):
            verdicts.append(Adherence.MEETS_SOFT)
        else:
            verdicts.append(Adherence.MEETS_STRICT)
    return min(verdicts)


@settings(max_examples=examples(80), deadline=None)
@given(
    places=CLUSTERS,
    sizes=st.sampled_from([(3, 3), (4, 4), (6, 3), (5, 5), (4, 2), (5, 3)]),
    zones=st.sampled_from([(1, 2), (2, 3), (2, 2)]),
    weighted=st.booleans(),
    free=FREE,
    excluded=st.frozensets(st.sampled_from(BOOKIES), max_size=2),
    read_only=st.frozensets(st.sampled_from(BOOKIES), max_size=2),
)
def test_strict_ensembles_adhere(
    places: dict[str, str],
    sizes: tuple[int, int],
    zones: tuple[int, int],
    weighted: bool,
    free: dict[str, int],
    excluded: frozenset[str],
    read_only: frozenset[str],
) -> None:
    """Bookies are distinct, writable, not excluded, not in the default domain, and over the required zones."""
    size, write_quorum = sizes
    least, desired = zones
    placement = zoned(places, weighted_placement=weighted, zones_min=least, zones_desired=desired)
    placement.weights_changed(free)
    placement.bookies_changed(frozenset(places), read_only)
    candidates = {bookie for bookie in places if places[bookie] != DEFAULT} - read_only - excluded
    if size % write_quorum or write_quorum <= least:
        with pytest.raises(QuorumError):
            placement.new_ensemble(size, write_quorum, 2, excluded=excluded)
        return
    try:
        ensemble = placement.new_ensemble(size, write_quorum, 2, excluded=excluded)
    except NotEnoughBookies:
        return
    assert len(set(ensemble)) == len(ensemble) == size
    assert candidates.issuperset(ensemble)
    homes = [places[bookie] for bookie in ensemble]
    verdict = judged(homes, write_quorum, least, desired)
    assert verdict >= Adherence.MEETS_SOFT
    assert placement.adheres(ensemble, write_quorum, 2) is verdict


@given(
    places=CLUSTERS,
    ensemble=st.lists(st.sampled_from(BOOKIES), max_size=6, unique=True),
    write_quorum=st.integers(1, 4),
    zones=st.sampled_from([(1, 2), (2, 3), (2, 2)]),
)
def test_adherence_agrees_with_the_definition(
    places: dict[str, str], ensemble: list[str], write_quorum: int, zones: tuple[int, int]
) -> None:
    """Strict, soft and violating ensembles are told apart."""
    placement = zoned(places, zones_min=zones[0], zones_desired=zones[1])
    homes = [places.get(bookie, DEFAULT) for bookie in ensemble]
    assert placement.adheres(ensemble, write_quorum, 1) is judged(homes, write_quorum, *zones)


SIX = {f"{place[1]}{place[3]}{number}": place for place in PLACES for number in (1, 2)}


@pytest.mark.parametrize("weighted", [False, True])
def test_three_zones_and_replacements_among_them(weighted: bool) -> None:
    """If there is room everywhere, each write quorum has all desired zones, also after each replacement."""
    placement = zoned(SIX, weighted_placement=weighted)
    placement.weights_changed(dict.fromkeys(SIX, 100))
    for _ in range(30):
        ensemble = list(placement.new_ensemble(6, 3, 2))
        assert placement.adheres(ensemble, 3, 2) is Adherence.MEETS_STRICT
        for index in range(6):
            ensemble[index] = placement.replacement(3, 2, ensemble, index)
            assert placement.adheres(ensemble, 3, 2) is Adherence.MEETS_STRICT


def test_a_zone_that_is_down_leaves_a_soft_ensemble() -> None:
    """Two zones are enough for what is required."""
    placement = zoned({bookie: place for bookie, place in SIX.items() if place[1] != "z"})
    ensemble = placement.new_ensemble(3, 3, 2)
    assert placement.adheres(ensemble, 3, 2) is Adherence.MEETS_SOFT
    with pytest.raises(NotEnoughBookies, match="2 zones"):
        placement.replacement(3, 2, ensemble, 0, excluded=SIX)


def test_candidates_bound_their_own_weights() -> None:
    """With the dynamic selector the median is that of the candidates."""
    places = {"x": "/x/1", "y": "/y/1", **{f"z{number}": "/z/1" for number in range(3)}}
    placement = zoned(places, weighted_placement=True, weight_multiple_max=2)
    placement.weights_changed({"x": 1, "y": 1, "z0": 100, "z1": 200, "z2": 1000})
    counts = Counter(placement.replacement(3, 2, ["x", "y", "gone"], 2) for _ in range(10_000))
    assert counts["z2"] / 10_000 == pytest.approx(400 / 700, abs=0.03)


def test_any_bookies_where_zones_are_not_enforced() -> None:
    """Any bookies are chosen for any size, also from the default domain."""
    placement = zoned({"a": DEFAULT, "b": DEFAULT, "c": "/x/1"}, zones_strict=False)
    assert sorted(placement.new_ensemble(3, 2, 2)) == ["a", "b", "c"]
    assert placement.replacement(2, 2, ["a", "b"], 0) == "c"


def test_zones_of_those_who_acknowledged() -> None:
    """The bookies must be an ack quorum, in as many zones as a write quorum must span."""
    placement = zoned(SIX)
    assert placement.spans_fault_domains({"x11", "y11"}, 3, 2)
    assert not placement.spans_fault_domains({"x11", "x21"}, 3, 2)
    assert not placement.spans_fault_domains({"x11", "y11"}, 3, 3)


def test_more_zones_required_than_desired() -> None:
    """Requiring more zones than desired is an error."""
    with pytest.raises(ConfigurationError, match="minNumZonesPerWriteQuorum=3"):
        ZonePlacement(
            ClientConfig(zones_min=3, zones_desired=2), Random(1), Clock(), Locations(Table({}), DEFAULT), DEFAULT
        )
