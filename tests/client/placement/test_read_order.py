"""The order in which replicas are read."""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import pytest

from bookie.client.config import ClientConfig
from bookie.client.placement.read_order import ReadOrder
from tests.client.placement.clusters import Clock

ENSEMBLE = ["a", "b", "c", "d", "e"]
ALL = [0, 1, 2, 3, 4]


class Case:
    """A read order with all bookies writable unless stated otherwise."""

    def __init__(self, **settings: Any) -> None:
        self.clock = Clock()
        self.order = ReadOrder(ClientConfig(**settings), Random(3), self.clock)
        self.writable = set(ENSEMBLE)
        self.read_only: set[str] = set()
        self.pending: dict[str, int] = {}

    def __call__(self, write_set: Sequence[int] = tuple(ALL), remote: Callable[[str], bool] | None = None) -> list[int]:
        order = self.order.order(
            ENSEMBLE,
            write_set,
            lambda bookie: self.pending.get(bookie, 0),
            writable=self.writable,
            read_only=self.read_only,
            remote=remote,
        )
        return list(order)


def test_nothing_changes_while_all_are_well() -> None:
    """Writable and read-only bookies that are well keep their order."""
    case = Case()
    assert case([2, 3, 4]) == [2, 3, 4]
    case.writable -= {"c"}
    case.read_only = {"c"}
    assert case([2, 3, 4]) == [2, 3, 4]
    case.order.failed("d", 1)
    assert case([2, 3, 4]) == [2, 3, 4], (
        "a failure alone is no reason: upstream looks at it only where somebody is slow"
    )


def test_classes_in_their_order() -> None:
    """Writable, failed (older failures first), read-only, slow (fewer pending requests first), and absent bookies."""
    case = Case()
    case.order.slow("a")
    case.order.slow("b")
    case.pending = {"a": 2, "b": 1}
    assert case() == [2, 3, 4, 1, 0]
    case.writable -= {"c"}
    case.read_only = {"c"}
    assert case() == [3, 4, 2, 1, 0]
    case.order.failed("d", 8)
    case.order.failed("e", 7)
    assert case() == [4, 3, 2, 1, 0]
    case.read_only = set()
    assert case() == [4, 3, 1, 0, 2]
    case.order.failed("b", 9)
    assert case() == [4, 3, 1, 0, 2], "who failed and is late counts as failed"


def test_it_is_forgotten() -> None:
    """Slow and failed bookies are forgotten after `bookieFailureHistoryExpirationMSec`."""
    case = Case(bookie_failure_expiry_s=10.0)
    case.order.slow("a")
    case.clock.now = 9.0
    assert case() == [1, 2, 3, 4, 0]
    case.clock.now = 10.0
    assert case() == ALL


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"bookie_failure_tracking": False}, [1, 2, 3, 4, 0]),
        ({"reorder_pending_threshold": 5}, ALL),
        ({"reorder_reads": False}, ALL),
    ],
)
def test_what_is_switched_off_is_not_kept(settings: dict[str, Any], expected: list[int]) -> None:
    """Failures, slow bookies and the whole order can be disabled by their settings."""
    case = Case(**settings)
    case.order.slow("a")
    case.order.failed("b", 1)
    assert case() == expected


def test_the_least_busy_replica_comes_first_from_a_threshold_on() -> None:
    """With `readReorderThresholdPendingRequests` the least busy replica is first, and the others keep their order."""
    case = Case(reorder_pending_threshold=3)
    case.pending = {"a": 5, "b": 4, "c": 3, "d": 3, "e": 9}
    assert case() == ALL
    case.pending["d"] = 2
    assert case() == [3, 0, 1, 2, 4]


def test_random_reordering_stays_within_the_classes() -> None:
    """`ensembleRandomReadReordering` distributes reads over the healthy bookies."""
    case = Case(random_read_reordering=True)
    case.order.slow("a")
    case.order.slow("b")
    seen = {tuple(case()) for _ in range(100)}
    assert {order[3:] for order in seen} == {(0, 1)}
    assert {order[:3] for order in seen} == {(2, 3, 4), (2, 4, 3), (3, 2, 4), (3, 4, 2), (4, 2, 3), (4, 3, 2)}


def test_another_region_is_read_behind_two_local_ones() -> None:
    """A replica of another region is third at the latest, and first if none is local."""
    case = Case()
    assert case(remote="de".__contains__) == [0, 1, 3, 2, 4]
    assert case([4, 3, 2, 1, 0], remote="de".__contains__) == [2, 1, 4, 0, 3]
    assert case(remote="bcde".__contains__) == [0, 1, 2, 3, 4]
    case.order.slow("b")
    case.order.failed("d", 1)
    assert case(remote="cd".__contains__) == [0, 4, 2, 3, 1]
