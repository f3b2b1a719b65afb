"""From free bytes to weights, capped at a multiple of the median as in Apache BookKeeper, or of the minimum.

A bookie whose free space is unknown has the weight of the smallest known one; if nothing is known, all weights are
equal. Limits are separate from the values they apply to, because candidates are a part of the cluster, and each part
has limits of its own. Plain numbers; any thread.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

__all__ = ["limits", "Limits", "limits_of", "shares"]


class Limits(NamedTuple):
    """The limits of the weights of some candidates, in bytes: `low` is the weight of unknown ones, `cap` may be
    infinite.
    """

    low: float
    cap: float

    def weight(self, free: int) -> float:
        """Return the weight of a bookie with this many bytes free, 0 for unknown."""
        weight = free if free > 0 else self.low
        return min(weight, self.cap)


def limits(known: Callable[[int], int], count: int, smallest: int, multiple: int, mode: str) -> Limits:
    """Return the limits for `count` candidates, one or more.

    `known(k)` is the k-th smallest of their free bytes, and `smallest` the smallest above 0. The median is that of
    all candidates, unknown ones included; if most are unknown, it is 0 and nothing is capped.
    """
    if not smallest:
        return Limits(1.0, float(multiple) if multiple > 0 else float("inf"))
    middle = count // 2
    if mode == "min":
        base = float(smallest)
    else:
        base = float(known(middle)) if count % 2 else (known(middle - 1) + known(middle)) / 2
    cap = multiple * base
    return Limits(float(smallest), cap if cap > 0 else float("inf"))


def limits_of(free: Sequence[int], multiple: int, mode: str) -> Limits:
    """Return the limits for candidates with these free bytes, 0 for unknown."""
    ordered = sorted(free)
    smallest = next((one for one in ordered if one > 0), 0)
    return limits(ordered.__getitem__, len(ordered), smallest, multiple, mode)


def shares(free: Sequence[int], multiple: int, mode: str) -> list[float]:
    """Return each candidate's capped weight as a share of all free bytes; the shares may not add up to 1."""
    if not free:
        return []
    bound = limits_of(free, multiple, mode)
    total = sum(free) or len(free)
    return [bound.weight(one) / total for one in free]
