"""What operators see of the weights: a row for each bookie, and the same as metrics, with what was drawn by weight.

Values; any thread.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from bookie.client.config import ClientConfig
from bookie.client.contracts import Drawn
from bookie.client.placement.load import weights_of
from bookie.client.placement.weights import limits_of
from bookie.client.wire.bookie_space import BookieInfo
from bookie.metrics.family import Family, Kind, Sample

__all__ = ["chances", "families", "placement_families", "Row"]


class Row(NamedTuple):
    """A bookie's disk space, its weight before and after the cap, and its chance to be chosen.

    `total` and `free` are in bytes, or None if they are unknown. `chance`, from 0 to 1, is that of being drawn first
    among all bookies; without weights it is the same for all. `adds_per_s` is None if the bookie does not tell it.
    """

    bookie: str
    total: int | None
    free: int | None
    weight: float
    capped: float
    chance: float
    adds_per_s: float | None = None


def chances(writable: Collection[str], known: Mapping[str, BookieInfo], config: ClientConfig) -> list[Row]:
    """Return a row for each writable bookie, sorted by id."""
    names = sorted(writable)
    weights = weights_of({name: known[name] for name in names if name in known}, config.load_weight)
    free = [weights.get(name, 0) for name in names]
    if not names:
        return []
    bound = limits_of(free, config.weight_multiple_max, config.weight_cap)
    capped = [bound.weight(one) for one in free]
    total = sum(capped)
    rows = []
    for name, space, weight in zip(names, free, capped, strict=True):
        info = known.get(name)
        chance = weight / total if config.weighted_placement else 1 / len(names)
        size, left = (info.total, info.free) if info else (None, None)
        rate = info.adds_per_s if info else None
        rows.append(Row(name, size, left, float(space or bound.low), weight, chance, rate))
    return rows


SAMPLES = (
    ("bookie_total_bytes", "total", "Size of a bookie's ledger disks."),
    ("bookie_free_bytes", "free", "Free bytes on a bookie's ledger disks."),
    ("bookie_adds_per_second", "adds_per_s", "Adds to a bookie between the last two polls, if it tells."),
    ("placement_weight_bytes", "weight", "Weight of a bookie before the cap: free bytes, also by load if that counts."),
    ("placement_capped_weight_bytes", "capped", "Weight of a bookie after the cap among all writable bookies."),
    ("placement_chance_ratio", "chance", "Chance of a bookie to be drawn first among all."),
)


def families(rows: Iterable[Row]) -> list[Family]:
    """Return the rows as gauges, one of each kind per bookie, whose id is the only label."""
    rows = list(rows)
    return [
        Family(
            f"bookie_client_{name}",
            Kind.GAUGE,
            help_text,
            tuple(
                Sample(value, (("bookie", row.bookie),)) for row in rows if (value := getattr(row, field)) is not None
            ),
        )
        for name, field, help_text in SAMPLES
    ]


def placement_families(
    writable: Collection[str], known: Mapping[str, BookieInfo], drawn: Mapping[str, Drawn], config: ClientConfig
) -> list[Family]:
    """Return what is known about bookies and how they were drawn by weight, as gauges and counters with their ids."""
    used = [((("bookie", bookie),), one) for bookie, one in sorted(drawn.items())]
    return [
        *families(chances(writable, known, config)),
        Family("bookie_client_placement_used_weight_bytes", Kind.GAUGE,
               "Weight with which a bookie was drawn last, after the cap among the candidates of that time.",
               tuple(Sample(round(one.weight), labels) for labels, one in used)),
        Family("bookie_client_placement_draws_total", Kind.COUNTER, "Times that a bookie was drawn by weight.",
               tuple(Sample(one.count, labels) for labels, one in used)),
        Family("bookie_client_placement_capped_draws_total", Kind.COUNTER,
               "Times that it was drawn with a weight that was capped.",
               tuple(Sample(one.capped, labels) for labels, one in used)),
    ]  # fmt: skip
