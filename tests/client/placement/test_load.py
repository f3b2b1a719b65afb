"""The load of bookies: from what they tell to a rate, and to weights."""

from collections import Counter
from random import Random

import pytest

from bookie.client.config import ClientConfig
from bookie.client.placement.base import Policy
from bookie.client.placement.factory import placement_for
from bookie.client.placement.load import FACTOR_MIN, rated, weights_of
from bookie.client.wire.bookie_space import BookieInfo

MIB = 1 << 20


def told(adds: int, uptime_ms: int) -> BookieInfo:
    """Return the answer of one of our bookies."""
    return BookieInfo(1000, 500, read_only=False, adds=adds, uptime_ms=uptime_ms, journal_queue_bytes=0)


def loaded(rate: float | None, *, free: int = 100, queue: int = 0) -> BookieInfo:
    """Return an answer with a rate."""
    return BookieInfo(1000, free, adds_per_s=rate, journal_queue_bytes=queue)


@pytest.mark.parametrize(
    ("before", "now", "rate"),
    [
        pytest.param(None, told(500, 10_000), 50, id="since the start"),
        pytest.param(told(500, 10_000), told(900, 12_000), 200, id="since the last poll"),
        pytest.param(told(500, 10_000), told(500, 12_000), 0, id="idle"),
        pytest.param(told(500, 10_000), told(40, 2_000), 20, id="restarted"),
        pytest.param(BookieInfo(1000, 500), told(40, 2_000), 20, id="was a Java bookie"),
        pytest.param(told(500, 10_000), BookieInfo(1000, 500), None, id="tells nothing"),
    ],
)
def test_rates(before: BookieInfo | None, now: BookieInfo, rate: float | None) -> None:
    """A rate is that of the time between two answers of the same process."""
    assert rated(now, before).adds_per_s == rate


def test_load_is_ignored_by_default() -> None:
    """Weights are free bytes."""
    known = {"a": loaded(1), "b": loaded(1000, free=50)}
    assert weights_of(known, ClientConfig().load_weight) == {"a": 100, "b": 50}


def test_a_busy_bookie_weighs_less() -> None:
    """Above the median load, the weight is lowered in proportion, at most to a quarter; below, it is the free bytes."""
    known = {"idle": loaded(0), "half": loaded(50), "a": loaded(100), "b": loaded(100), "java": loaded(None),
             "twice": loaded(200), "hot": loaded(10**6)}  # fmt: skip
    assert weights_of(known, 1.0) == {
        "idle": 100, "half": 100, "a": 100, "b": 100, "java": 100, "twice": 50, "hot": 100 * FACTOR_MIN,
    }  # fmt: skip
    assert weights_of(known, 7.0) == weights_of(known, 1.0), "1 is the most"
    assert weights_of(known, 0.5)["twice"] == round(100 / 2**0.5)


def test_a_long_journal_queue_is_load_as_well() -> None:
    """With few adds, a bookie may still be busy: its disk is slow. Short queues say nothing."""
    known = {"slow": loaded(100, queue=8 * MIB), "a": loaded(100, queue=2 * MIB), "b": loaded(100, queue=2 * MIB)}
    assert weights_of(known, 1.0) == {"slow": 25, "a": 100, "b": 100}
    known = {"slow": loaded(100, queue=8000), "a": loaded(100, queue=20), "b": loaded(100, queue=20)}
    assert set(weights_of(known, 1.0).values()) == {100}


def test_a_cluster_without_load() -> None:
    """If nobody tells, or most do nothing, only space counts."""
    assert weights_of({"a": loaded(None), "b": loaded(None, free=7)}, 1.0) == {"a": 100, "b": 7}
    assert weights_of({"a": loaded(0), "b": loaded(0, free=7), "c": loaded(5)}, 1.0) == {"a": 100, "b": 7, "c": 100}
    assert weights_of({}, 1.0) == {}


def test_the_policy_draws_by_space_and_load() -> None:
    """A bookie with the same space and twice the load is chosen half as often."""
    config = ClientConfig(placement_policy="default", weighted_placement=True, load_weight=1.0)
    policy = placement_for(config, Random(2), float)
    assert isinstance(policy, Policy)
    known = {"a": loaded(100), "b": loaded(100), "c": loaded(200)}
    policy.bookies_changed(frozenset(known), frozenset())
    policy.info_changed(known)
    counts = Counter(policy.new_ensemble(1, 1, 1)[0] for _ in range(10_000))
    assert counts["c"] / 10_000 == pytest.approx(0.2, abs=0.02)
    assert policy.info == known
