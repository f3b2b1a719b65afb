"""Tests of summaries: quantiles cover the last window, and count and sum cover the time since the start."""

import math

from hypothesis import given
from hypothesis import strategies as st

from bookie._fast.base.op_stats import OpView, tally
from bookie.server.metrics.windows import QUANTILES, Series, Windows, totals

WIDTH = 1 / 8
"""A bucket's width, as a share of its least value."""


class Clock:
    """A clock that the test sets."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def quantiles(windows: Windows, well: list[OpView], failed: list[OpView] | None = None) -> dict[str, list[float]]:
    """Return the quantiles of one scrape by outcome."""
    windows.turn()
    family = windows.family("op", "Op.", [Series(failed or [], well, (("n", "1"),))], 0.5)
    found: dict[str, list[float]] = {"true": [], "false": []}
    for value, labels, suffix in family.samples:
        assert dict(labels)["n"] == "1"
        if not suffix:
            found[dict(labels)["success"]].append(value)
    return found


@given(first=st.lists(st.integers(0, 1 << 50)), second=st.lists(st.integers(0, 1 << 50), min_size=1))
def test_quantiles_are_of_the_last_window(first: list[int], second: list[int]) -> None:
    """Observations before the window do not count, and each quantile lies within a bucket's width of the exact one."""
    clock = Clock()
    windows = Windows(60, clock)
    assert all(math.isnan(value) for value in quantiles(windows, [tally(first)])["true"])
    clock.now = 60.0
    quantiles(windows, [tally(first)])
    clock.now = 119.0
    during = quantiles(windows, [tally(first + second)])["true"]
    assert during == quantiles(windows, [tally(first)])["true"] or not first
    clock.now = 120.0
    last = quantiles(windows, [tally(first), tally(second)])  # two threads counted
    ranked = sorted(second)
    for quantile, value in zip(QUANTILES, last["true"], strict=True):
        true = ranked[math.ceil(quantile * len(ranked)) - 1]
        assert abs(value / 0.5 - true) <= WIDTH * true
    assert all(math.isnan(value) for value in last["false"])


def test_number_and_sum_are_of_all_time() -> None:
    """They cover both outcomes, in the unit that is shown."""
    family = Windows(60, Clock()).family("op", "Op.", [Series([tally([4])], [tally([10, 20]), tally([30])])], 0.5)
    rest = {(dict(labels)["success"], suffix): value for value, labels, suffix in family.samples if suffix}
    assert rest == {
        ("false", "_count"): 1, ("false", "_sum"): 2.0, ("true", "_count"): 3, ("true", "_sum"): 30.0,
    }  # fmt: skip


def test_what_has_no_quantiles() -> None:
    """Only count and sum are shown."""
    family = totals("op", "Op.", [((("n", "1"),), 2, 3.5)])
    assert [(one.suffix, one.value) for one in family.samples] == [("_count", 2), ("_sum", 3.5)]
