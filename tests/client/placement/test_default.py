"""Placement without network locations."""

from collections import Counter
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookie.client.config import ClientConfig
from bookie.client.contracts import Adherence
from bookie.client.placement.factory import placement_for
from bookie.errors import NotEnoughBookies

BOOKIES = [f"10.0.0.{number}:3181" for number in range(12)]
SUBSETS = st.frozensets(st.sampled_from(BOOKIES))


def clock() -> float:
    """Return a constant time."""
    return 0.0


@given(
    writable=SUBSETS,
    read_only=SUBSETS,
    excluded=SUBSETS,
    free=st.dictionaries(st.sampled_from(BOOKIES), st.integers(0, 1 << 62)),
    size=st.integers(1, 6),
    weighted=st.booleans(),
    policy=st.sampled_from(["default", "rack"]),
    seed=st.integers(0, 1 << 32),
)
def test_an_ensemble_is_distinct_writable_and_not_excluded(
    writable: frozenset[str],
    read_only: frozenset[str],
    excluded: frozenset[str],
    free: dict[str, int],
    size: int,
    weighted: bool,
    policy: str,
    seed: int,
) -> None:
    """NotEnoughBookies is raised exactly when there are too few; PL1, PL2: whatever is known about their free space."""
    config = ClientConfig(placement_policy=policy, weighted_placement=weighted)
    placement = placement_for(config, Random(seed), clock)
    placement.weights_changed(free)
    placement.bookies_changed(writable, read_only)
    candidates = writable - read_only - excluded
    if len(candidates) < size:
        with pytest.raises(NotEnoughBookies):
            placement.new_ensemble(size, size, size, excluded=excluded)
        return
    ensemble = placement.new_ensemble(size, size, size, excluded=excluded)
    assert len(set(ensemble)) == size
    assert candidates.issuperset(ensemble)
    left = candidates - set(ensemble)
    if left:
        assert placement.replacement(size, size, ensemble, 0, excluded=excluded) in left
    else:
        with pytest.raises(NotEnoughBookies):
            placement.replacement(size, size, ensemble, 0, excluded=excluded)


def test_weights_decide_only_where_they_are_asked_for() -> None:
    """A bookie with a third of the free space is drawn for a third of the ledgers, or for a sixth without weights."""
    names = [f"b{number}" for number in range(6)]
    free = dict(zip(names, (100, 100, 200, 200, 300, 100), strict=True))
    for weighted, share in ((True, 0.3), (False, 1 / 6)):
        placement = placement_for(
            ClientConfig(placement_policy="default", weighted_placement=weighted), Random(7), clock
        )
        placement.bookies_changed(frozenset(names), frozenset())
        placement.weights_changed(free)
        counts = Counter(placement.new_ensemble(1, 1, 1)[0] for _ in range(20_000))
        assert counts["b4"] / 20_000 == pytest.approx(share, abs=0.02)


@pytest.mark.parametrize(
    ("settings", "share"),
    [
        pytest.param({}, 600 / 1300, id="thrice the median"),
        pytest.param({"weight_cap": "min"}, 300 / 1000, id="thrice the minimum"),
        pytest.param({"weight_multiple_max": 0}, 2000 / 2700, id="no cap"),
    ],
)
def test_the_cap_bounds_the_share_of_a_large_bookie(settings: dict[str, Any], share: float) -> None:
    """A bookie with ten times the median of free space is drawn for the share that the cap leaves to it."""
    names = [f"b{number}" for number in range(5)]
    config = ClientConfig(placement_policy="default", weighted_placement=True, **settings)
    placement = placement_for(config, Random(7), clock)
    placement.bookies_changed(frozenset(names), frozenset())
    placement.weights_changed(dict(zip(names, (100, 100, 200, 300, 2000), strict=True)))
    counts = Counter(placement.new_ensemble(1, 1, 1)[0] for _ in range(20_000))
    assert counts["b4"] / 20_000 == pytest.approx(share, abs=0.015)


def test_pl2_a_newcomer_counts_as_the_smallest_until_it_is_known() -> None:
    """PL2: a bookie of unknown size is no error, and its weight is used once it is known."""
    placement = placement_for(ClientConfig(placement_policy="default", weighted_placement=True), Random(8), clock)
    placement.bookies_changed(frozenset({"a", "b", "new"}), frozenset())
    placement.weights_changed({"a": 100, "b": 300})
    counts = Counter(placement.new_ensemble(1, 1, 1)[0] for _ in range(20_000))
    assert counts["new"] / 20_000 == pytest.approx(0.2, abs=0.02)
    placement.weights_changed({"a": 100, "b": 300, "new": 400})
    counts = Counter(placement.new_ensemble(1, 1, 1)[0] for _ in range(20_000))
    assert counts["new"] / 20_000 == pytest.approx(0.5, abs=0.02)


def test_the_same_seed_chooses_the_same() -> None:
    """The same seed gives the same choices, whatever the order of sets in memory."""
    runs = []
    for members in (BOOKIES, BOOKIES[::-1]):
        placement = placement_for(ClientConfig(placement_policy="default"), Random(9), clock)
        placement.bookies_changed(frozenset(members), frozenset())
        runs.append([placement.new_ensemble(3, 2, 2) for _ in range(50)])
    assert runs[0] == runs[1]


def test_without_places_reads_keep_their_order_and_everything_adheres() -> None:
    """Reads keep their order and every ensemble satisfies the policy, as in Apache BookKeeper."""
    placement = placement_for(ClientConfig(placement_policy="default"), Random(9), clock)
    placement.bookies_changed(frozenset(BOOKIES), frozenset())
    placement.slow(BOOKIES[0])
    placement.failed(BOOKIES[0], 3)
    assert list(placement.read_order(BOOKIES[:3], [2, 0, 1], len)) == [2, 0, 1]
    assert placement.spans_fault_domains({BOOKIES[0]}, 3, 2)
    assert placement.adheres(BOOKIES[:3], 3, 2) is Adherence.MEETS_STRICT
