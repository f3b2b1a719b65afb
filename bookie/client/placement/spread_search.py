"""Search for a spread of an ensemble over racks, for when choosing one bookie after the other has failed.

Apache BookKeeper gives up there. The search is over racks, not bookies; it remembers dead ends, and is bounded. One
event loop.
"""

from collections.abc import Mapping
from random import Random

from bookie.client.placement.coverage import Spread

__all__ = ["spread_over"]

STEPS_MAX = 2000


def spread_over(
    free: Mapping[str, int], size: int, write_quorum: int, at_least: int, random: Random
) -> list[str] | None:
    """Return a rack for each place of an ensemble, so that every write quorum spans `at_least` racks; None if
    impossible.

    `free` has the number of available bookies of each rack. The result is also None if the search takes too long,
    which happens with very many racks that are nearly empty.
    """
    left = {rack: count for rack, count in free.items() if count > 0}
    if sum(left.values()) < size or len(left) < min(write_quorum, at_least):
        return None
    order = list(left)
    random.shuffle(order)
    dead: set[tuple[object, ...]] = set()
    steps = STEPS_MAX

    def search(spread: Spread) -> list[str] | None:
        nonlocal steps
        chosen = spread.places
        if len(chosen) == size:
            return chosen
        edge = write_quorum - 1
        state = (tuple(left.values()), tuple(chosen[:edge]), tuple(chosen[-edge:]))
        if state in dead:
            return None
        # The rack with most bookies goes first, so that scarce ones are kept for places where no other fits.
        for rack in sorted(order, key=lambda rack: -left[rack]):
            if not left[rack] or not spread.accepts(rack):
                continue
            steps -= 1
            if steps < 0:
                return None
            left[rack] -= 1
            further = spread.copy()
            further.add(rack)
            found = search(further)
            left[rack] += 1
            if found is not None:
                return found
        dead.add(state)
        return None

    return search(Spread(size, write_quorum, at_least))
