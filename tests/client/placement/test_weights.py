"""The weights of bookies by their free space: the tables of Apache BookKeeper and of the proposal on disk weights."""

import pytest

from bookie.client.placement.weights import shares

GB = 1 << 30
FIVE = (200, 200, 300, 500, 1000)
SIX = (100, 100, 200, 200, 300, 100)
SEVEN = (1, 4, 5, 10, 30, 30, 30)


@pytest.mark.parametrize("unit", [1, GB])
@pytest.mark.parametrize(
    ("free", "multiple", "mode", "expected"),
    [
        pytest.param(SIX, 3, "median", (0.1, 0.1, 0.2, 0.2, 0.3, 0.1), id="proposal 1.1"),
        pytest.param(SIX, 3, "min", (0.1, 0.1, 0.2, 0.2, 0.3, 0.1), id="proposal 1.1, minimum"),
        pytest.param(SIX, 1, "min", (0.1, 0.1, 0.1, 0.1, 0.1, 0.1), id="once the minimum"),
        pytest.param(FIVE, 2, "median", (0.0909, 0.0909, 0.1364, 0.2273, 0.2727), id="proposal 1.2, median"),
        pytest.param(FIVE, 3, "median", (0.0909, 0.0909, 0.1364, 0.2273, 0.4091), id="thrice the median"),
        pytest.param(FIVE, 2, "min", (0.0909, 0.0909, 0.1364, 0.1818, 0.1818), id="proposal 1.2, minimum"),
        pytest.param(SEVEN, 2, "median", [w / 110 for w in (1, 4, 5, 10, 20, 20, 20)], id="proposal, one tiny"),
        pytest.param(SEVEN, 2, "min", [w / 110 for w in (1, 2, 2, 2, 2, 2, 2)], id="proposal, one tiny, minimum"),
        pytest.param((0, 0, 100, 200), 3, "median", (1 / 3, 1 / 3, 1 / 3, 0.5), id="two unknown"),
        pytest.param((0, 0, 0, 200), 3, "median", (1, 1, 1, 1), id="most unknown: no cap"),
        pytest.param((0, 0, 0, 200), 3, "min", (1, 1, 1, 1), id="most unknown, minimum"),
        pytest.param((0, 0, 0, 0), 3, "median", (0.25,) * 4, id="all unknown"),
        pytest.param(FIVE, 0, "median", [w / 2200 for w in FIVE], id="no multiple, no cap"),
        pytest.param(FIVE, -1, "min", [w / 2200 for w in FIVE], id="no multiple, no cap, minimum"),
        pytest.param((), 3, "median", (), id="nobody"),
    ],
)
def test_the_tables_of_the_rule(
    unit: int, free: tuple[int, ...], multiple: int, mode: str, expected: tuple[float, ...]
) -> None:
    """The published numbers, before they are scaled to 1, are reproduced."""
    assert shares([one * unit for one in free], multiple, mode) == pytest.approx(expected, abs=5e-5)


def test_the_published_hundredths() -> None:
    """The proposal gives its second example in probabilities, which add up to 1.1; the caps are the same."""
    free = [1, 4, 5, 10, 30, 30, 30]
    total = sum(free)
    by_median = [share * total / 100 for share in shares(free, 2, "median")]
    by_minimum = [share * total / 100 for share in shares(free, 2, "min")]
    assert by_median == pytest.approx((0.01, 0.04, 0.05, 0.1, 0.2, 0.2, 0.2))
    assert by_minimum == pytest.approx((0.01, 0.02, 0.02, 0.02, 0.02, 0.02, 0.02))
