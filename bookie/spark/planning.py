"""Units of work that must be the same when a job is resumed: they are planned once and kept in its state."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from itertools import islice, takewhile
from operator import itemgetter
from typing import TYPE_CHECKING, TypeVar

from bookie.spark.state import State

if TYPE_CHECKING:
    from bookie.spark.options import Ranges

__all__ = ["clipped", "in_groups", "ledger_units", "PLAN", "planned", "units_done"]

T = TypeVar("T")

PLAN = "plan"
"""The name under which the state of a job keeps its units."""


def planned(state: State, make: Callable[[], list[str]]) -> list[str]:
    """Return the units of the job: those recorded in its state, else those of `make`, which are recorded."""
    if PLAN not in state.done:
        return list(state.note(PLAN, units=make())["units"])
    return list(state.done[PLAN]["units"])


def units_done(state: State) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield the units that are done and their results, without the plan."""
    return ((unit, facts) for unit, facts in state.done.items() if unit != PLAN)


def in_groups(things: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield lists of `size` consecutive things."""
    left = iter(things)
    while group := list(islice(left, size)):
        yield group


def ledger_units(uri: str, settings: dict[str, str], wanted: "Ranges | None", size: int) -> list[str]:
    """Return units of `size` ledgers each for all ledgers of a cluster that are wanted, as "first-last" ids."""
    from bookie.client import BookKeeper  # noqa: PLC0415  # --help does not need the client
    from bookie.spark.options import within  # noqa: PLC0415

    with BookKeeper(uri, **settings) as client:
        ids = (str(ledger) for ledger in client.list_ledgers() if within(wanted, ledger))
        return [f"{group[0]}-{group[-1]}" for group in in_groups(ids, size)]


def clipped(unit: str, ranges: "Ranges | None") -> str:
    """Return the ids of a unit of `ledger_units` that lie in `ranges`, as text."""
    if ranges is None:
        return unit
    first, last = map(int, unit.split("-"))
    at = bisect_left(ranges, first, key=itemgetter(1))
    within = takewhile(lambda one: one[0] <= last, ranges[at:])
    return ",".join(f"{max(first, low)}-{min(last, high)}" for low, high in within)
