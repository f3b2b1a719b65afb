"""Draws outside some racks behave as if the other bookies were a cluster of their own."""

from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bookie.client.config import ClientConfig
from bookie.client.placement.racks import Racks
from bookie.client.placement.weights import shares
from tests.client.placement.clusters import BOOKIES

DRAWS = 20_000
SPACES = {
    "alike": [100, 110, 120, 130, 140, 150, 160, 170, 180],
    "one large": [10, 12, 14, 16, 900, 20, 22, 24, 26],
    "unknown ones": [0, 0, 14, 1, 900, 20, 0, 24, 26],
    "nothing known": [0] * 9,
    "all large outside": [1, 1, 1000, 2000, 9000, 1, 1, 0, 1],
}


@pytest.mark.parametrize("mode", ["median", "min"])
@pytest.mark.parametrize("spaces", SPACES.values(), ids=SPACES)
def test_weights_outside_are_bounded_by_those_outside(spaces: list[int], mode: str) -> None:
    """Apache BookKeeper makes a new table of the other bookies for each choice; the chances here are the same."""
    places = dict(zip(BOOKIES, ["/a", "/a", "/b", "/b", "/b", "/c", "/c", "/d", "/d"], strict=True))
    free = dict(zip(BOOKIES, spaces, strict=True))
    racks = Racks(places, free, ClientConfig(weighted_placement=True, weight_cap=mode), Random(4))
    out = ("/a", "/c")
    left = [bookie for bookie in BOOKIES if places[bookie] not in out]
    expected = dict(zip(left, shares([free[bookie] for bookie in left], 3, mode), strict=True))
    counts = Counter(racks.outside(out, lambda _: False) for _ in range(DRAWS))
    total = sum(expected.values())
    for bookie, share in expected.items():
        assert counts[bookie] / DRAWS == pytest.approx(share / total, abs=0.02)


@settings(deadline=None)
@given(
    places=st.dictionaries(st.sampled_from(BOOKIES), st.sampled_from(["/a", "/b", "/c"])),
    free=st.dictionaries(st.sampled_from(BOOKIES), st.integers(0, 1 << 62)),
    out=st.lists(st.sampled_from(["/a", "/b", "/c", "/elsewhere"]), max_size=4),
    refused=st.frozensets(st.sampled_from(BOOKIES)),
    weighted=st.booleans(),
    mode=st.sampled_from(["median", "min"]),
    seed=st.integers(0, 1 << 32),
)
def test_pl1_outside_finds_somebody_whenever_there_is_somebody(
    places: dict[str, str],
    free: dict[str, int],
    out: list[str],
    refused: frozenset[str],
    weighted: bool,
    mode: str,
    seed: int,
) -> None:
    """PL1: a draw finds a bookie if there is one, and ends if there is none."""
    racks = Racks(places, free, ClientConfig(weighted_placement=weighted, weight_cap=mode), Random(seed))
    left = {bookie for bookie, rack in places.items() if rack not in out and bookie not in refused}
    chosen = racks.outside(out, refused.__contains__)
    assert (chosen in left) if left else chosen is None
