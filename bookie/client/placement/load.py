"""From what bookies tell to weights in bytes: free space, and if that is configured, also load. Values; any thread.

The weight of a bookie whose load is above the median is lowered, at most to a quarter:

    weight = free bytes * min(1, median load / load) ** placementLoadWeight

That of the others is not raised, because a bookie that is nearly full has little load, and must not get more for that.
A load is the mean rate of adds since the last poll, in relation to the median, or the bytes that
wait for the journal, in relation to theirs, whichever is more.
"""

from collections.abc import Mapping
from statistics import median

from bookie.client.wire.bookie_space import BookieInfo

__all__ = ["rated", "weights_of"]

FACTOR_MIN = 0.25
QUEUE_BYTES_MIN = 1 << 20
"""Journal queues count only if their median has as many bytes; shorter ones say nothing about a bookie."""


def rated(info: BookieInfo, before: BookieInfo | None) -> BookieInfo:
    """Return an answer with the rate of adds since the one before, or since the bookie's start."""
    if info.adds is None or not info.uptime_ms:
        return info
    adds, elapsed_ms = info.adds, info.uptime_ms
    if before is not None and before.adds is not None and before.uptime_ms is not None:
        more_adds, more_ms = adds - before.adds, elapsed_ms - before.uptime_ms
        if more_adds >= 0 and more_ms > 0:  # otherwise, the bookie was restarted
            adds, elapsed_ms = more_adds, more_ms
    return info._replace(adds_per_s=adds * 1000 / elapsed_ms)


def weights_of(known: Mapping[str, BookieInfo], load_weight: float) -> dict[str, int]:
    """Return the weight of each bookie in bytes.

    Args:
        known: What bookies told, by id.
        load_weight: The exponent: 0 ignores load, 1 is the most. Bookies that do not tell their load, such as those of
            Apache BookKeeper, count as if theirs were the median.
    """
    if load_weight <= 0:
        return {bookie: info.free for bookie, info in known.items()}
    rates = {bookie: info.adds_per_s for bookie, info in known.items() if info.adds_per_s is not None}
    queues = {bookie: float(info.journal_queue_bytes or 0) for bookie, info in known.items() if bookie in rates}
    ratios = _ratios(rates)
    if queues and median(queues.values()) >= QUEUE_BYTES_MIN:
        waiting = _ratios(queues)
        ratios = {bookie: max(ratio, waiting[bookie]) for bookie, ratio in ratios.items()}
    exponent = min(load_weight, 1.0)
    return {
        bookie: round(info.free * max(max(ratios.get(bookie, 1.0), 1.0) ** -exponent, FACTOR_MIN))
        for bookie, info in known.items()
    }


def _ratios(loads: Mapping[str, float]) -> dict[str, float]:
    """Return each load in relation to the median; all are 1 if that is 0."""
    middle = median(loads.values()) if loads else 0.0
    if middle <= 0:
        return dict.fromkeys(loads, 1.0)
    return {bookie: load / middle for bookie, load in loads.items()}
