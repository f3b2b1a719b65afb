"""Which bookies are polled for disk space, when, and who is informed; bookies, registrations and time are modelled."""

import asyncio
from collections.abc import Callable
from random import Random
from typing import cast

import pytest

from bookie.client.config import ClientConfig
from bookie.client.contracts import Bookies
from bookie.client.placement.bookie_info import BookieInfoReader, scan
from bookie.client.placement.factory import placement_for
from bookie.client.wire.bookie_space import BookieInfo
from bookie.errors import BookieUnavailable, RequestTimeout
from tests.client.placement.modelled_time import run

GB = 1 << 30


class Cluster:
    """Bookies with free space, down or silent, and the list of registered ones."""

    def __init__(self, **free: int) -> None:
        self.free = dict(free)
        self.down: set[str] = set()
        self.silent: set[str] = set()
        self.asked: list[tuple[float, str]] = []
        self._watchers: list[Callable[[frozenset[str]], None]] = []

    async def bookie_info(self, bookie: str) -> BookieInfo:
        """Answer like a bookie."""
        self.asked.append((asyncio.get_running_loop().time(), bookie))
        await asyncio.sleep(0.001)
        if bookie in self.silent:
            await asyncio.sleep(3600)
        if bookie in self.down:
            raise BookieUnavailable(f"bookie {bookie}: connection refused")
        return BookieInfo(1000 * GB, self.free[bookie])

    def watch(self, reader: BookieInfoReader) -> BookieInfoReader:
        """Call a listener with the registered bookies, now and after each change."""
        self._watchers.append(reader.members_changed)
        reader.members_changed(frozenset(self.free))
        return reader

    def change(self, *gone: str, **free: int) -> None:
        """Let some bookies leave, and some join."""
        self.free = {name: one for name, one in {**self.free, **free}.items() if name not in gone}
        for watcher in self._watchers:
            watcher(frozenset(self.free))

    def asked_since(self, since: float) -> list[str]:
        """Return the polled bookies by name."""
        return sorted(bookie for at, bookie in self.asked if at >= since)


def reader_of(cluster: Cluster, **settings: object) -> BookieInfoReader:
    """Return a reader without weights and without a policy, which polls for its subscribers."""
    config = ClientConfig.of(settings)
    return cluster.watch(BookieInfoReader(config, cast("Bookies", cluster)))


def test_all_are_asked_at_first_and_once_an_interval() -> None:
    """Every subscriber is called after each poll, a late one at once; nothing is polled before there is one."""

    async def scenario() -> None:
        cluster = Cluster(a=1, b=2)
        reader = reader_of(cluster, getBookieInfoIntervalSeconds=100)
        reader.start()
        await asyncio.sleep(10)
        assert not cluster.asked
        reported: list[dict[str, int]] = []
        first = reader.subscribe(lambda known: reported.append({name: info.free for name, info in known.items()}))
        await asyncio.sleep(50)
        assert cluster.asked_since(0) == ["a", "b"]
        cluster.free["a"] = 7
        await asyncio.sleep(100)
        assert cluster.asked_since(60) == ["a", "b"]
        assert reported[-1] == {"a": 7, "b": 2}
        late: list[object] = []
        second = reader.subscribe(late.append)
        assert late == [reader.known]
        first.close()
        first.close()
        second.close()
        await asyncio.sleep(1000)
        assert len(cluster.asked_since(160)) <= 2, "nobody listens any more"
        third = reader.subscribe(late.append)
        await asyncio.sleep(1)
        assert cluster.asked_since(1160) == ["a", "b"]
        third.close()
        await reader.stop()
        await reader.stop()

    run(scenario())


def test_a_listener_that_fails(caplog: pytest.LogCaptureFixture) -> None:
    """The failure of a listener is logged; the others are called, and polling continues."""

    def fail(_: object) -> None:
        raise ValueError("this listener fails")

    async def scenario() -> None:
        cluster = Cluster(a=1)
        reader = reader_of(cluster, getBookieInfoIntervalSeconds=100)
        reported: list[object] = []
        reader.subscribe(fail)
        reader.subscribe(reported.append)
        reader.start()
        await asyncio.sleep(150)
        assert len(reported) == len(cluster.asked_since(0)) == 2
        await reader.stop()

    run(scenario())
    assert [record.exc_info is not None for record in caplog.records] == [True, True]


def test_newcomers_are_asked_alone_and_who_left_is_forgotten() -> None:
    """New bookies are polled at once, without waiting for the interval."""

    async def scenario() -> None:
        cluster = Cluster(a=1, b=2)
        reader = reader_of(cluster)
        reader.subscribe(lambda _: None)
        reader.start()
        await asyncio.sleep(10)
        cluster.change("a", c=3)
        await asyncio.sleep(1)
        assert cluster.asked_since(10) == ["c"]
        assert sorted(reader.known) == ["b", "c"]
        reader.refresh()
        await asyncio.sleep(1)
        assert cluster.asked_since(11) == ["b", "c"]
        await reader.stop()

    run(scenario())


def test_who_failed_is_asked_again_after_the_retry_interval() -> None:
    """Only failed bookies are polled again. Their former values are forgotten, and the error is kept."""

    async def scenario() -> None:
        cluster = Cluster(a=1, b=2)
        reported: list[list[str]] = []
        reader = reader_of(cluster, getBookieInfoIntervalSeconds=100, getBookieInfoRetryIntervalSeconds=7)
        reader.subscribe(lambda known: reported.append(sorted(known)))
        reader.start()
        await asyncio.sleep(50)
        cluster.down.add("b")
        await asyncio.sleep(51)
        assert reported[-1] == ["a"]
        assert isinstance(reader.errors["b"], BookieUnavailable)
        cluster.down.clear()
        await asyncio.sleep(8)
        assert cluster.asked_since(101) == ["b"]
        assert reported[-1] == ["a", "b"]
        assert not reader.errors
        cluster.down.add("a")
        reader.refresh()
        await asyncio.sleep(1)
        cluster.change("a")
        await asyncio.sleep(1)
        assert not reader.errors, "it left"
        await reader.stop()

    run(scenario())


@pytest.mark.parametrize("count", [3, 300])
def test_pl3_silence_ends_with_the_timeout(count: int) -> None:
    """PL3: if no bookie answers, the poll ends with its timeout, however many bookies there are."""

    async def scenario() -> None:
        cluster = Cluster(**{f"b{number}": 1 for number in range(count)})
        cluster.silent = {name for name in cluster.free if name != "b0"}
        cluster.down = {"b0"}
        loop = asyncio.get_running_loop()
        began = loop.time()
        answers = await scan(cast("Bookies", cluster), cluster.free, 5.0)
        assert loop.time() - began == pytest.approx(5.0)
        assert isinstance(answers.pop("b0"), BookieUnavailable)
        assert len(answers) == count - 1
        assert all(isinstance(answer, RequestTimeout) for answer in answers.values())
        assert await scan(cast("Bookies", cluster), (), 5.0) == {}

    run(scenario())


@pytest.mark.parametrize("weighted", [False, True])
def test_pl2_the_policy_gets_fresh_weights_where_they_count(weighted: bool) -> None:
    """PL2: a weighted policy is informed after every poll; without weights nothing is polled for the policy."""

    async def scenario() -> None:
        cluster = Cluster(a=1, b=10**9)
        config = ClientConfig(weighted_placement=weighted, weight_multiple_max=0, placement_policy="default")
        placement = placement_for(config, Random(1), asyncio.get_running_loop().time)
        placement.bookies_changed(frozenset("ab"), frozenset())
        reader = cluster.watch(BookieInfoReader(config, cast("Bookies", cluster), placement))
        reader.start()
        await asyncio.sleep(1)
        assert bool(cluster.asked) == weighted
        counts = [placement.new_ensemble(1, 1, 1)[0] for _ in range(200)].count("a")
        assert (counts == 0) == weighted
        cluster.free = {"a": 10**9, "b": 1}
        reader.refresh()
        await asyncio.sleep(1)
        if weighted:
            assert placement.new_ensemble(1, 1, 1) == ("a",)
        await reader.stop()

    run(scenario())
