"""Small clusters for tests of placement, and checkers that try all possibilities."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from random import Random
from typing import Any, TypeVar

from hypothesis import strategies as st

from bookie.client.config import ClientConfig
from bookie.client.placement.locations import Locations
from bookie.client.placement.placed import PlacedPolicy
from bookie.client.placement.rack import RackPlacement

P = TypeVar("P", bound=PlacedPolicy)


class Table:
    """A resolver with a table of hosts. It records what it was asked."""

    by_name = True

    def __init__(self, places: Mapping[str, str | None]) -> None:
        self.places = dict(places)
        self.asked: list[str] = []

    def resolve(self, hosts: Sequence[str]) -> list[str | None]:
        """Return the locations of hosts, None for those that are not in the table."""
        self.asked += hosts
        return [self.places.get(host) for host in hosts]


class Clock:
    """A clock that is set by hand."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def placed_by(
    kind: type[P],
    places: Mapping[str, str],
    default: str,
    *,
    local: str | None = None,
    seed: int = 1,
    clock: Clock | None = None,
    **settings: Any,
) -> P:
    """Return a policy whose cluster is all the hosts of a table."""
    locations = Locations(Table(places), default, lambda bookie: bookie)
    placement = kind(ClientConfig(**settings), Random(seed), clock or Clock(), locations, local or default)
    placement.bookies_changed(frozenset(places), frozenset())
    return placement


def placed(places: Mapping[str, str], **settings: Any) -> RackPlacement:
    """Return a rack-aware policy."""
    return placed_by(RackPlacement, places, "/default-rack", **settings)


def windows(ensemble: Sequence[str], write_quorum: int) -> Iterator[list[str]]:
    """Return the write quorums of an ensemble."""
    for start in range(len(ensemble)):
        yield [ensemble[(start + step) % len(ensemble)] for step in range(write_quorum)]


def spread(racks: Sequence[str], write_quorum: int, racks_min: int) -> bool:
    """Return whether all write quorums span enough racks."""
    return all(len(set(window)) >= min(write_quorum, racks_min) for window in windows(racks, write_quorum))


def can_be_spread(counts: Mapping[str, int], size: int, write_quorum: int, racks_min: int) -> bool:
    """Return whether an ensemble can be spread, by trying all."""
    return any(
        all(racks.count(rack) <= count for rack, count in counts.items()) and spread(racks, write_quorum, racks_min)
        for racks in product(counts, repeat=size)
    )


BOOKIES = [f"b{number}" for number in range(9)]
# A few bookies in each of a few racks, so that a spread is just possible, or just impossible.
CLUSTERS = st.dictionaries(st.sampled_from(BOOKIES), st.sampled_from(["/a", "/b", "/c", "/default-rack"]))
QUORUMS = st.integers(1, 5).flatmap(
    lambda size: st.integers(1, size).flatmap(
        lambda write: st.tuples(st.just(size), st.just(write), st.integers(1, write))
    )
)
FREE = st.dictionaries(st.sampled_from(BOOKIES), st.one_of(st.integers(0, 3), st.integers(0, 1 << 62)))
