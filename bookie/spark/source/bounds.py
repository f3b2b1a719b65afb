"""The filters on ledger and entry ids that Spark pushes down, applied to the ranges to read. Any process.

Spark does not apply again what is accepted here, so only exact filters are accepted.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from bookie.client.arguments import IDS_END
from bookie.spark.source.ranges import Range

__all__ = ["Bounds"]


@dataclass(frozen=True, slots=True)
class Interval:
    """The numbers from `low` to `high` - 1."""

    low: int = 0
    high: int = IDS_END

    def cut(self, low: int = 0, high: int = IDS_END) -> "Interval":
        """Return the intersection with another interval."""
        return Interval(max(self.low, low), min(self.high, high))


CUTS: dict[str, Callable[[Interval, int], Interval]] = {
    "EqualTo": lambda one, value: one.cut(value, value + 1),
    "EqualNullSafe": lambda one, value: one.cut(value, value + 1),
    "GreaterThan": lambda one, value: one.cut(low=value + 1),
    "GreaterThanOrEqual": lambda one, value: one.cut(low=value),
    "LessThan": lambda one, value: one.cut(high=value),
    "LessThanOrEqual": lambda one, value: one.cut(high=value + 1),
}
"""How each of Spark's filters, by class name, narrows an interval."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The ledger and entry ids to read. `among` restricts the ledgers to these, unless it is None."""

    ledgers: Interval = Interval()
    entries: Interval = Interval()
    among: frozenset[int] | None = None

    def with_filters(self, filters: Iterable[Any]) -> tuple["Bounds", list[Any]]:
        """Return the bounds narrowed by the filters that can be applied, and the filters that cannot."""
        bounds, left = self, []
        for one in filters:
            narrower = bounds._narrowed(one)
            if narrower is None:
                left.append(one)
            else:
                bounds = narrower
        return bounds, left

    def of(self, one: Range) -> Range:
        """Return what the bounds leave of a range, which may be nothing."""
        if not self.ledgers.low <= one.ledger < self.ledgers.high:
            return replace(one, end=one.first, nbytes=0, open_end=False)
        if self.among is not None and one.ledger not in self.among:
            return replace(one, end=one.first, nbytes=0, open_end=False)
        first = max(one.first, self.entries.low)
        end = max(first, min(one.end, self.entries.high))
        nbytes = one.nbytes * (end - first) // max(one.count, 1)
        return replace(one, first=first, end=end, nbytes=nbytes)

    def _narrowed(self, one: Any) -> "Bounds | None":
        kind, column = type(one).__name__, getattr(one, "attribute", None)
        if column not in {("ledger_id",), ("entry_id",)}:
            return None
        if kind == "IsNotNull":  # ids are never null
            return self
        if kind == "In" and column == ("ledger_id",):
            among = frozenset(one.value)
            return replace(self, among=among if self.among is None else self.among & among)
        if kind not in CUTS or type(one.value) is not int:
            return None
        if column == ("ledger_id",):
            return replace(self, ledgers=CUTS[kind](self.ledgers, one.value))
        return replace(self, entries=CUTS[kind](self.entries, one.value))
