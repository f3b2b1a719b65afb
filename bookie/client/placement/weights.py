"""Free bytes into shares: upstream's rule with its cap at a multiple of the median, and the proposal's of the minimum.

A bookie whose free space is unknown counts as the smallest known one; a cluster of which nothing is known is uniform.
A limit is kept apart from what it is applied to, because candidates are a part of the cluster and each part has limits
of its own. Plain numbers, any thread.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

__all__ = ["limits", "Limits", "limits_of", "shares"]


class Limits(NamedTuple):
    """What bounds the weights of some candidates, in bytes. `low`: what one with nothing known has; `cap`: or inf."""

    low: float
    cap: float

    def weight(self, free: int) -> float:
        """Of a bookie with so many bytes free, 0 for unknown."""
        weight = free if free > 0 else self.low
        return min(weight, self.cap)


def limits(known: Callable[[int], int], count: int, smallest: int, multiple: int, mode: str) -> Limits:
    """Of `count` candidates, one at least; known(k): the k-th smallest of their free bytes; smallest: of those above 0.

    The median is the one of all, those with nothing known included: when these are most, it is 0 and nothing is capped.
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
    """Of candidates with these bytes free, 0 for unknown."""
    ordered = sorted(free)
    smallest = next((one for one in ordered if one > 0), 0)
    return limits(ordered.__getitem__, len(ordered), smallest, multiple, mode)


def shares(free: Sequence[int], multiple: int, mode: str) -> list[float]:
    """The chance of each before they are scaled to 1 again: of all free bytes, capped."""
    if not free:
        return []
    bound = limits_of(free, multiple, mode)
    total = sum(free) or len(free)
    return [bound.weight(one) / total for one in free]
