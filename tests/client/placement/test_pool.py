"""Draws of bookies: by weight, never a refused one, and always ending."""

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookie.client.placement.pool import DRAWS_MAX, Pool
from bookie.client.placement.weights import shares

DRAWS = 1_000_000
SIX = (100, 100, 200, 200, 300, 100)
FIVE = (200, 200, 300, 500, 1000)
# The value that chi-square exceeds once in a million tables, by degrees of freedom.
CHI_SQUARE = {2: 27.6, 3: 30.7, 4: 33.4, 5: 35.9}


def chi_square(counts: Counter[str], expected: dict[str, float]) -> float:
    """Return the chi-square statistic of counts against weights of any scale."""
    total, scale = sum(counts.values()), sum(expected.values())
    return sum(
        (counts[name] - total * share / scale) ** 2 / (total * share / scale) for name, share in expected.items()
    )


@pytest.mark.parametrize(
    ("free", "multiple", "mode"),
    [
        pytest.param(SIX, 3, "median", id="proposal 1.1"),
        pytest.param(FIVE, 2, "min", id="proposal 1.2, minimum"),
        pytest.param(FIVE, 2, "median", id="proposal 1.2, median"),
    ],
)
def test_a_million_draws_follow_the_shares(free: tuple[int, ...], multiple: int, mode: str) -> None:
    """The draws follow the weights in the proposal's worked examples."""
    names = [f"b{number}" for number in range(len(free))]
    expected = dict(zip(names, shares(free, multiple, mode), strict=True))
    draw = Pool(names, list(expected.values()), Random(5)).draw
    counts = Counter([draw() for _ in range(DRAWS)])
    assert sum(counts.values()) == DRAWS
    assert chi_square(counts, expected) < CHI_SQUARE[len(free) - 1]


@pytest.mark.parametrize("crowd", [2, DRAWS_MAX * 3])
def test_the_rest_keeps_its_proportions(crowd: int) -> None:
    """Whichever bookies are refused, the others are drawn by their weights."""
    names = [f"b{number}" for number in range(crowd + 3)]
    weights = [1000.0] * crowd + [1.0, 2.0, 3.0]
    pool = Pool(names, weights, Random(6))
    out = set(names[:crowd])
    counts = Counter(str(pool.choose(out.__contains__)) for _ in range(20_000))
    assert not out & counts.keys()
    assert chi_square(counts, dict(zip(names[crowd:], weights[crowd:], strict=True))) < CHI_SQUARE[2]


@given(
    weights=st.lists(st.floats(1e-9, 1e18), min_size=1, max_size=40),
    out=st.sets(st.integers(0, 39)),
    weighted=st.booleans(),
    seed=st.integers(0, 1 << 32),
)
def test_pl1_it_ends_and_takes_nothing_refused(weights: list[float], out: set[int], weighted: bool, seed: int) -> None:
    """PL1: a draw ends even if all bookies, or nearly all of the weight, are refused."""
    names = [f"b{number}" for number in range(len(weights))]
    refused = {f"b{number}" for number in out}
    chosen = Pool(names, weights if weighted else None, Random(seed)).choose(refused.__contains__)
    if refused.issuperset(names):
        assert chosen is None
    else:
        assert chosen in set(names) - refused


class Edge(Random):
    """Randomness that always gives the largest number."""

    def random(self) -> float:
        """Return the largest number below 1."""
        return 1 - 2**-53


@pytest.mark.parametrize("weights", [[5e-324], [5e-324, 5e-324], [1e18, 1e-9], [0.1] * 3, None])
def test_a_sum_that_rounds_up_stays_inside(weights: list[float] | None) -> None:
    """The largest draw times the smallest sum rounds to the sum itself, and still gives a bookie."""
    names = ["a", "b", "c"][: len(weights or "abc")]
    assert Pool(names, weights, Edge()).draw() in names
