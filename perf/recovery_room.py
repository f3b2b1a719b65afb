"""`python -m perf.recovery_room`: how full auto-recovery makes bookies.

A cluster of 1,000 bookies in 20 racks, filled unevenly and some of them nearly to the warn threshold, loses bookies,
and workers copy what these had, many ledgers at the same time. The bookies are chosen by the client's own code; only
their disks are modelled. Nobody sees a copy before it is complete. Prints one JSON object per run: the fullest
bookie, how many bookies were driven over the threshold, and the room that the others had left.
"""

import asyncio
import json
from random import Random
from typing import Any, cast

import click
import numpy as np

from bookie.client.config import ClientConfig
from bookie.client.placement.factory import placement_for
from bookie.client.placement.resolver import Resolver
from bookie.client.replication.counters import Counters
from bookie.client.replication.fragments import Fragment
from bookie.client.replication.targets import Targets
from bookie.client.wire.bookie_space import BookieInfo
from bookie.metadata.records.ledger_metadata import LedgerMetadata, LedgerState, Segment

DISK = 4 * 10**12
WARN = 0.90
RUNS = {
    "policy alone": {"copies_need_room": False},
    "weights": {"copies_need_room": False, "weighted_placement": True},
    "room": {},
    "room and weights": {"weighted_placement": True},
}


class Racks(Resolver):
    """Twenty racks, to which the bookies are assigned in turn."""

    by_name = True

    def resolve(self, hosts: Any) -> Any:
        """Return the rack of each bookie."""
        return [f"/rack{int(host[1:]) % 20}" for host in hosts]


class Disks:
    """The disks of the bookies, of which only complete copies take room."""

    def __init__(self, bookies: int, generator: np.random.Generator) -> None:
        self.names = [f"b{at:04}" for at in range(bookies)]
        self.place = {name: at for at, name in enumerate(self.names)}
        self.used = generator.uniform(0.55, WARN - 0.005, bookies) * DISK
        self.asked = 0

    async def bookie_info(self, bookie: str) -> BookieInfo:
        """Answer like a bookie."""
        self.asked += 1
        return self.told(bookie)

    def told(self, bookie: str) -> BookieInfo:
        """Return the size of a bookie's disk, and the room on it."""
        return BookieInfo(DISK, round(DISK - self.used[self.place[bookie]]))


async def run(name: str, bookies: int, lost: int, workers: int, mean_bytes: float, seed: int) -> dict[str, Any]:
    """Simulate one recovery, and return its figures."""
    generator = np.random.default_rng(seed)
    disks = Disks(bookies, generator)
    config = ClientConfig(
        copy_usage_max=WARN, weight_paced_pause_max_s=0.0, local_node_ignored=True, **cast("Any", RUNS[name])
    )
    placement = placement_for(config, Random(seed), float, resolver=Racks(), hosts=str)
    gone = frozenset(disks.names[:lost])
    left = disks.names[lost:]
    placement.bookies_changed(frozenset(left), frozenset())
    placement.weights_changed({bookie: disks.told(bookie).free for bookie in left})
    counters = Counters()
    targets = [Targets(placement, cast("Any", disks), config, counters) for _ in range(workers)]
    to_copy = float(disks.used[:lost].sum())
    over, warned = DISK * WARN, 0.0
    copied = 0.0
    while copied < to_copy:
        sizes = generator.lognormal(np.log(mean_bytes) - 0.5, 1.0, workers)
        tasks = []
        for one, size in zip(targets, sizes, strict=True):
            others = generator.choice(len(left), 2, replace=False)
            ensemble = (disks.names[int(generator.integers(lost))], *(left[int(at)] for at in others))
            metadata = LedgerMetadata(
                ensemble_size=3, write_quorum=3, ack_quorum=2, segments=(Segment(0, ensemble),),
                state=LedgerState.CLOSED, length=round(size), last_entry=999,
            )  # fmt: skip
            part = Fragment(0, 999, 0, ensemble[0], closed=True, stored=(0, 999))
            tasks.append(one.choose(metadata, ensemble, [part], gone))
        for chosen, size in zip(await asyncio.gather(*tasks), sizes, strict=True):
            at = disks.place[chosen[0]]
            warned += size if disks.used[at] + size > over else 0.0
            disks.used[at] += size
            copied += float(size)
    used = disks.used[lost:]
    return {
        "run": name, "bookies": bookies, "lost": lost, "workers": workers,
        "copied_tb": round(copied / 1e12, 1),
        "fullest": round(float(used.max()) / DISK, 4),
        "over_warn": int((used > over).sum()),
        "over_warn_tb": round(warned / 1e12, 1),
        "room_left_tb": round(float(np.maximum(over - used, 0).sum()) / 1e12, 1),
        "spread": round(float((used / DISK).std()), 4),
        "asked_per_copy": round(disks.asked / max(copied / mean_bytes, 1), 2),
    }  # fmt: skip


@click.command()
@click.option("--bookies", type=click.IntRange(10), default=1000, show_default=True)
@click.option("--lost", type=click.IntRange(1), default=100, show_default=True)
@click.option("--workers", type=click.IntRange(1), default=100, show_default=True)
@click.option("--ledger-gb", type=float, default=5.0, show_default=True, help="Mean size of a copy.")
@click.option("--seed", type=int, default=1, show_default=True)
def main(bookies: int, lost: int, workers: int, ledger_gb: float, seed: int) -> None:
    """Run the simulations one after the other, in this process."""
    for name in RUNS:
        print(json.dumps(asyncio.run(run(name, bookies, lost, workers, ledger_gb * 1e9, seed))), flush=True)


if __name__ == "__main__":
    main()
