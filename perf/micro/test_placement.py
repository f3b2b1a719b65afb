"""The cost of choosing an ensemble of three among 5,000 bookies in 100 racks, averaged over a thousand.

CPU time is measured, so that other work on the machine does not count. In `uneven`, a seventh of the bookies is five
times as large as the others, so that caps apply, and ten are not known.
"""

import time
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from bookie.client.config import ClientConfig
from bookie.client.placement.factory import placement_for

ROUNDS = 1000
BOOKIES = [f"10.{number // 250}.0.{number % 250}:3181" for number in range(5000)]
LOCATIONS = {
    "default": "",
    "rack": "/r{rack}",
    "region": "/g{region}/r{rack}",
    "zone": "/z{region}/d{domain}",
}


class Places:
    """A resolver that knows the racks of all bookies."""

    by_name = True

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern

    def resolve(self, hosts: Sequence[str]) -> list[str | None]:
        """Return the rack, which follows from the number in the address."""
        numbers = [250 * int(host.split(".")[1]) + int(host.split(".")[3]) for host in hosts]
        return [self._pattern.format(rack=n % 100, region=n % 5, domain=n // 5 % 4) for n in numbers]


@pytest.mark.benchmark(timer=time.thread_time)
@pytest.mark.parametrize("weights", ["none", "even", "uneven"])
@pytest.mark.parametrize("policy", LOCATIONS)
def test_new_ensemble(policy: str, weights: str, benchmark: Any) -> None:
    """Measure a thousand ensembles per round: 50 ms per round are 50 us each."""
    config = ClientConfig(placement_policy=policy, weighted_placement=weights != "none", local_node_ignored=True)
    placement = placement_for(config, Random(1), lambda: 0.0, resolver=Places(LOCATIONS[policy]))
    placement.bookies_changed(frozenset(BOOKIES), frozenset())
    sizes = Random(2)
    free = {bookie: sizes.randrange(5 * 10**12, 10**13) for bookie in BOOKIES}
    if weights == "uneven":
        free.update({bookie: free[bookie] * 5 for bookie in BOOKIES[::7]})
        free.update(dict.fromkeys(BOOKIES[::500], 0))
    placement.weights_changed(free)

    def choose() -> None:
        for _ in range(ROUNDS):
            placement.new_ensemble(3, 3, 2)

    benchmark(choose)
