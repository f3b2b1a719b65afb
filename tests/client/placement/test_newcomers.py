"""Locations of new bookies are looked up off the event loop, and the policy is informed in order."""

import asyncio
import threading
from collections.abc import Sequence
from random import Random

from bookie.client.config import ClientConfig
from bookie.client.placement.factory import placement_for
from bookie.client.placement.newcomers import Newcomers
from tests.client.placement.clusters import Clock


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
        newcomers = Newcomers(placement)
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
    newcomers = Newcomers(placement)
    newcomers(frozenset({"a:1"}), frozenset())
    assert placement.new_ensemble(1, 1, 1) == ("a:1",)
    newcomers.close()
