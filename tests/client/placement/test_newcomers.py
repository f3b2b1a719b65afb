"""Locations of new bookies are looked up off the event loop, and the policy is informed in order."""

import asyncio
import threading
from collections.abc import Sequence
from random import Random

import pytest

from bookie.client.config import ClientConfig
from bookie.client.placement.factory import placement_for
from bookie.client.placement.newcomers import Newcomers
from bookie.client.placement.placed import PlacedPolicy
from bookie.errors import MetadataStoreError, NotEnoughBookies
from bookie.metadata.bookies.service_info import BookieServiceInfo, bookie_endpoint
from tests.client.placement.clusters import Clock, Table


async def by_id(_: str) -> bytes | None:
    """Return what a bookie of an old version publishes: its host is in its id."""
    return b""


class Published:
    """What bookies publish; a bookie of `broken` cannot be read."""

    def __init__(self, **hosts: str) -> None:
        self.hosts = hosts
        self.broken: set[str] = set()
        self.asked = 0

    async def __call__(self, bookie: str) -> bytes | None:
        self.asked += 1
        if bookie in self.broken:
            raise MetadataStoreError("the store does not answer")
        host = self.hosts.get(bookie)
        return None if host is None else BookieServiceInfo((bookie_endpoint(host, 3181),)).to_bytes()


class Slow:
    """A resolver that waits for the test."""

    by_name = True

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.threads: set[int] = set()
        self.go = threading.Semaphore(0)

    def resolve(self, hosts: Sequence[str]) -> list[str | None]:
        """Return a rack for each host; one host is never found."""
        self.asked.append(list(hosts))
        self.threads.add(threading.get_ident())
        self.go.acquire()
        return [None if host == "lost" else f"/{host}" for host in hosts]


def test_a_slow_script_holds_nobody_up() -> None:
    """The event loop continues; changes meanwhile are reported once, and no time is spent on a host not found."""

    async def scenario() -> None:
        resolver = Slow()
        config = ClientConfig(local_node_ignored=True)
        placement = placement_for(config, Random(1), Clock(), resolver=resolver)
        newcomers = Newcomers(placement, by_id)
        newcomers(frozenset({"a:1"}), frozenset())
        await asyncio.sleep(0)
        newcomers(frozenset({"a:1", "b:1"}), frozenset())
        newcomers(frozenset({"a:1", "b:1", "lost:1"}), frozenset({"a:1"}))
        resolver.go.release(2)
        await newcomers.settled()
        assert resolver.asked == [["a"], ["b", "lost"]]
        assert threading.get_ident() not in resolver.threads
        assert sorted(placement.new_ensemble(2, 1, 1)) == ["b:1", "lost:1"]
        newcomers.close()
        newcomers.close()

    asyncio.run(scenario())


def test_without_a_resolver_the_policy_is_told_at_once() -> None:
    """Without a resolver the policy is informed at once, without a thread or a task."""
    placement = placement_for(ClientConfig(), Random(1), Clock())
    newcomers = Newcomers(placement, by_id)
    newcomers(frozenset({"a:1"}), frozenset())
    assert placement.new_ensemble(1, 1, 1) == ("a:1",)
    newcomers.close()


def placed(table: Table, **settings: object) -> PlacedPolicy:
    """Return a policy over racks that are enforced."""
    config = ClientConfig(local_node_ignored=True, racks_enforced=True, **settings)  # type: ignore[arg-type]
    policy = placement_for(config, Random(1), Clock(), resolver=table)
    assert isinstance(policy, PlacedPolicy)
    return policy


def test_racks_are_enforced_among_bookies_with_ids() -> None:
    """An id that is no address has the rack of the host in its registration, for read-only bookies, too."""

    async def scenario() -> None:
        published = Published(one="h1", two="h2", three="h1", four="h2")
        policy = placed(Table({"h1": "/r1", "h2": "/r2"}))
        newcomers = Newcomers(policy, published)
        newcomers(frozenset({"one", "two", "three"}), frozenset({"four"}))
        await newcomers.settled()
        told = [policy.locations.of(bookie) for bookie in ("one", "two", "three", "four")]
        assert told == ["/r1", "/r2", "/r1", "/r2"]
        for _ in range(20):
            ensemble = policy.new_ensemble(2, 2, 2)
            assert {policy.locations.of(bookie) for bookie in ensemble} == {"/r1", "/r2"}
        with pytest.raises(NotEnoughBookies):
            policy.new_ensemble(2, 2, 2, excluded={"two"})
        newcomers.close()

    asyncio.run(scenario())


def test_a_bookie_that_registers_anew_is_looked_up_again() -> None:
    """It may have moved; while it is registered nothing is asked, and the resolver is not asked about the same host."""

    async def scenario() -> None:
        published, table = Published(one="h1", two="h2"), Table({"h1": "/r1", "h2": "/r2", "h3": "/r3"})
        policy = placed(table)
        newcomers = Newcomers(policy, published)
        both = frozenset({"one", "two"})
        for members in (both, frozenset({"one"}), both, both):
            newcomers(members, frozenset())
            await newcomers.settled()
        assert (published.asked, policy.locations.of("two")) == (3, "/r2")
        newcomers(frozenset({"one"}), frozenset())
        published.hosts["two"] = "h3"
        newcomers(both, frozenset())
        await newcomers.settled()
        assert policy.locations.of("two") == "/r3"
        newcomers.close()

    asyncio.run(scenario())


def test_a_registration_that_cannot_be_read_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bookie has the default location until the store answers."""
    monkeypatch.setattr("bookie.client.placement.newcomers.RETRY_S", 0.01)

    async def scenario() -> None:
        published = Published(one="h1", two="h2")
        published.broken.add("two")
        policy = placed(Table({"h1": "/r1", "h2": "/r2"}))
        newcomers = Newcomers(policy, published)
        newcomers(frozenset({"one", "two"}), frozenset())
        await newcomers.settled()
        assert policy.locations.of("two") == policy.locations.default
        published.broken.clear()
        while policy.locations.of("two") != "/r2":  # noqa: ASYNC110 - the policy notifies nobody
            await asyncio.sleep(0.01)
        assert len(policy.new_ensemble(2, 2, 2)) == 2
        newcomers.close()

    asyncio.run(scenario())
