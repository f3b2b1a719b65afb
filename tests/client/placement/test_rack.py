"""Rack-aware placement, compared with checkers that try everything, on small clusters."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bookie.client.contracts import Adherence
from bookie.errors import NotEnoughBookies
from tests.client.placement.clusters import (
    BOOKIES,
    CLUSTERS,
    FREE,
    QUORUMS,
    Clock,
    can_be_spread,
    placed,
    spread,
    windows,
)
from tests.fixtures.draws import examples

DEFAULT = "/default-rack"
RULES = st.fixed_dictionaries(
    {"racks_min": st.integers(1, 3), "racks_enforced": st.booleans(), "weighted_placement": st.booleans()}
)


@settings(max_examples=examples(80), deadline=None)
@given(
    places=CLUSTERS,
    quorums=QUORUMS,
    rules=RULES,
    free=FREE,
    excluded=st.frozensets(st.sampled_from(BOOKIES), max_size=3),
    read_only=st.frozensets(st.sampled_from(BOOKIES), max_size=2),
    seed=st.integers(0, 1 << 32),
)
def test_ensembles_are_spread_whenever_they_can_be(
    places: dict[str, str],
    quorums: tuple[int, int, int],
    rules: dict[str, Any],
    free: dict[str, int],
    excluded: frozenset[str],
    read_only: frozenset[str],
    seed: int,
) -> None:
    """Bookies are distinct, writable, not excluded and over enough racks if possible; otherwise NotEnoughBookies is
    raised.

    PL1, PL2: whatever is known about their free space.
    """
    size, write_quorum, ack_quorum = quorums
    racks_min, enforced = rules["racks_min"], rules["racks_enforced"]
    placement = placed(places, seed=seed, **rules)
    placement.weights_changed(free)
    placement.bookies_changed(frozenset(places), read_only)
    candidates = set(places) - read_only - excluded
    if enforced:
        candidates = {bookie for bookie in candidates if places[bookie] != DEFAULT}
    counts = Counter(places[bookie] for bookie in candidates)
    spreadable = len(candidates) >= size and can_be_spread(counts, size, write_quorum, racks_min)
    if not spreadable and (enforced or len(candidates) < size):
        with pytest.raises(NotEnoughBookies):
            placement.new_ensemble(size, write_quorum, ack_quorum, excluded=excluded)
        return
    ensemble = placement.new_ensemble(size, write_quorum, ack_quorum, excluded=excluded)
    assert len(set(ensemble)) == len(ensemble) == size
    assert candidates.issuperset(ensemble)
    assert spread([places[bookie] for bookie in ensemble], write_quorum, racks_min) == spreadable
    assert placement.adheres(ensemble, write_quorum, ack_quorum) is (
        Adherence.MEETS_STRICT if spreadable else Adherence.FAIL
    )


@settings(max_examples=examples(80), deadline=None)
@given(
    places=CLUSTERS,
    ensemble=st.lists(st.sampled_from(BOOKIES), min_size=1, max_size=5, unique=True),
    write_quorum=st.integers(1, 5),
    rules=RULES,
    free=FREE,
    excluded=st.frozensets(st.sampled_from(BOOKIES), max_size=2),
    data=st.data(),
)
def test_a_replacement_keeps_the_spread_whenever_it_can(
    places: dict[str, str],
    ensemble: list[str],
    write_quorum: int,
    rules: dict[str, Any],
    free: dict[str, int],
    excluded: frozenset[str],
    data: st.DataObject,
) -> None:
    """A replacement is new to the ensemble and not excluded, and keeps the write quorums spread if a candidate can."""
    write_quorum = min(write_quorum, len(ensemble))
    index = data.draw(st.integers(0, len(ensemble) - 1))
    racks_min, enforced = rules["racks_min"], rules["racks_enforced"]
    placement = placed(places, **rules)
    placement.weights_changed(free)
    candidates = {
        bookie: place
        for bookie, place in places.items()
        if bookie not in excluded and bookie not in ensemble and not (enforced and place == DEFAULT)
    }

    def keeps(place: str) -> bool:
        tagged = [f"{number} {places.get(bookie, DEFAULT)}" for number, bookie in enumerate(ensemble)]
        tagged[index] = f"{index} {place}"
        through = [window for window in windows(tagged, write_quorum) if tagged[index] in window]
        needed = min(write_quorum, racks_min)
        return all(len({rack.partition(" ")[2] for rack in window}) >= needed for window in through)

    keeping = {bookie for bookie, place in candidates.items() if keeps(place)}
    try:
        chosen = placement.replacement(write_quorum, 1, ensemble, index, excluded=excluded)
    except NotEnoughBookies:
        # If racks are enforced, the old rack and new racks are acceptable, and others are not.
        assert not keeping
        assert enforced or not candidates
        return
    assert chosen in (keeping or candidates)


@given(
    places=CLUSTERS,
    ensemble=st.lists(st.sampled_from(BOOKIES), max_size=5, unique=True),
    write_quorum=st.integers(1, 5),
    racks_min=st.integers(1, 3),
    enforced=st.booleans(),
)
def test_adherence_agrees_with_counting(
    places: dict[str, str], ensemble: list[str], write_quorum: int, racks_min: int, enforced: bool
) -> None:
    """Bookies that are not writable add no rack, as in Apache BookKeeper."""
    write_quorum = min(write_quorum, len(ensemble))
    placement = placed(places, racks_min=racks_min, racks_enforced=enforced)
    good = bool(ensemble) and all(
        len({places[bookie] for bookie in window if bookie in places}) >= min(write_quorum, racks_min)
        for window in windows(ensemble, write_quorum)
    )
    if enforced and any(places.get(bookie) == DEFAULT for bookie in ensemble):
        good = False
    expected = Adherence.MEETS_STRICT if good else Adherence.FAIL
    assert placement.adheres(ensemble, write_quorum, 1) is expected


def test_the_first_bookie_stands_with_the_client() -> None:
    """Only the first bookie is in the client's rack, if one is writable there."""
    places = {"a1": "/a", "a2": "/a", "b1": "/b", "c1": "/c", "d1": "/d"}
    placement = placed(places, local="/a")
    for _ in range(50):
        ensemble = placement.new_ensemble(3, 3, 2)
        assert places[ensemble[0]] == "/a"
        assert len({places[bookie] for bookie in ensemble}) == 3
    assert places[placement.new_ensemble(3, 3, 2, excluded=("a1", "a2"))[0]] != "/a"


def test_fault_domains_of_those_who_acknowledged() -> None:
    """Two bookies of one rack do not suffice. One that is no longer writable after it answered still counts."""
    placement = placed({"a1": "/a", "a2": "/a", "b1": "/b"})
    assert not placement.spans_fault_domains({"a1", "a2"}, 3, 2)
    assert placement.spans_fault_domains({"a1", "b1"}, 3, 2)
    placement.bookies_changed(frozenset({"a1", "a2"}), frozenset({"b1"}))
    assert placement.spans_fault_domains({"a1", "b1"}, 3, 2)
    assert placement.spans_fault_domains({"a1"}, 1, 1)


def test_who_left_a_moment_ago_is_chosen_when_the_others_do_not_suffice() -> None:
    """It is so for `networkTopologyStabilizePeriodSeconds`, unless it became read-only, and never before the others."""
    clock = Clock()
    everybody = {"a1": "/a", "a2": "/a", "b1": "/b"}
    placement = placed(everybody, clock=clock, topology_stabilize_s=60.0)
    placement.bookies_changed(frozenset({"a1", "a2"}), frozenset())
    assert "b1" not in placement.new_ensemble(2, 2, 2)
    assert sorted(placement.new_ensemble(3, 3, 2)) == ["a1", "a2", "b1"]
    clock.now = 60.0
    with pytest.raises(NotEnoughBookies):
        placement.new_ensemble(3, 3, 2)
    placement.bookies_changed(frozenset(everybody), frozenset())
    placement.bookies_changed(frozenset({"a1", "a2"}), frozenset({"b1"}))
    with pytest.raises(NotEnoughBookies):
        placement.new_ensemble(3, 3, 2)


def test_a_bookie_at_another_depth_is_never_chosen() -> None:
    """It is not chosen until all bookies that were there first have left."""
    placement = placed({"a1": "/a", "b1": "/b", "odd": "/region/rack"})
    with pytest.raises(NotEnoughBookies, match="2 are writable"):
        placement.new_ensemble(3, 3, 2)
    assert "odd" not in placement.new_ensemble(2, 2, 2)
    placement.bookies_changed(frozenset({"odd"}), frozenset())
    assert placement.new_ensemble(1, 1, 1) == ("odd",)


def test_a_full_rack_is_left_for_another_by_weight() -> None:
    """Outside the first bookie's rack, weights are capped by the median there, as in Apache BookKeeper."""
    places = {"a1": "/a", **{f"b{number}": "/b" for number in range(4)}}
    free = {"a1": 1, "b0": 100, "b1": 100, "b2": 200, "b3": 10_000}
    placement = placed(places, local="/a", weighted_placement=True)
    placement.weights_changed(free)
    counts = Counter(placement.new_ensemble(2, 2, 2)[1] for _ in range(20_000))
    # The median of the rest is 150, so the cap is 450.
    assert counts["b3"] / 20_000 == pytest.approx(450 / 850, abs=0.02)
    assert counts["b2"] / 20_000 == pytest.approx(200 / 850, abs=0.02)
