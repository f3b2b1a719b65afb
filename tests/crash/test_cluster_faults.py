"""Real bookies that are killed, stopped, cut off, filled up, or left without metadata while a ledger is written.

L1 to L4, L7, L8, L10, L14: nothing acknowledged is lost, and nothing else is in the ledger once it is closed. The
judge is that of the simulation.
"""

import asyncio
import subprocess
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.crash.cluster import Bookie, Cluster, Workload
from tests.crash.small_disk import SmallDisk, Unavailable
from tests.fixtures.etcd import EtcdCluster
from tests.fixtures.zookeeper import ZooKeeperServer

pytestmark = pytest.mark.crash

MIB = 1 << 20
SOME = 60
"""Entries between two faults."""
Nemesis = Callable[[Workload], Coroutine[Any, Any, None]]


def play(cluster: Cluster, nemesis: Nemesis, *, closes: bool = True, **config: Any) -> Workload:
    """Run the scenario on this cluster; the test fails with what the judge found."""

    async def run() -> Workload:
        try:
            await cluster.start()
            workload = Workload(cluster, **config)
            violations = await workload.play(lambda: nemesis(workload), closes=closes)
            said = [f"{one.invariant}: {one.what}" for one in violations]
            assert not violations, "\n".join([f"silent in the end: {workload.silent}", *said])
            return workload
        finally:
            await cluster.close_gates()

    return asyncio.run(run())


async def ensemble(workload: Workload) -> list[Bookie]:
    """Return the bookies of the current ensemble, except the one with the metadata."""
    async with workload.client() as bk:
        names = (await bk.ledger_metadata(workload.ledger)).segments[-1].bookies
    bookies = workload.cluster.bookies
    return [bookies[place] for place in map(workload.cluster.place, names) if place]


async def replaced(workload: Workload, bookie: Bookie) -> None:
    """Wait until the writer continues without this bookie, or has failed."""
    while not workload.failed and bookie in await ensemble(workload):
        await workload.more(SOME // 4)


async def kills(workload: Workload) -> None:
    """Kill a bookie of the ensemble with SIGKILL, twice; each is restarted."""
    for _ in range(2):
        await workload.more(SOME)
        bookie = (await ensemble(workload))[0]
        bookie.kill()
        await workload.more(SOME)
        await asyncio.to_thread(bookie.start)
    await workload.more(SOME)


async def silences(workload: Workload) -> None:
    """Stop one bookie and cut off another; both return later with what they held."""
    await workload.more(SOME)
    stopped, cut = (await ensemble(workload))[:2]
    stopped.freeze()
    await replaced(workload, stopped)
    gate = workload.cluster.gates[workload.cluster.bookies.index(cut)]
    stopped.thaw()
    gate.shut()
    await replaced(workload, cut)
    gate.open()
    await workload.more(SOME)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Four bookies for all tests; the first holds the metadata."""
    cluster = Cluster(tmp_path_factory.mktemp("cluster"), 4, zkTimeout="4000")
    try:
        yield cluster
    finally:
        cluster.kill()


@pytest.mark.parametrize("v2", [False, True], ids=["v3", "v2"])
def test_l1_to_l14_bookies_are_killed(cluster: Cluster, v2: bool) -> None:
    """The writer and the tailing reader continue with other bookies."""
    workload = play(cluster, kills, useV2WireProtocol=v2)
    assert workload.acked >= 4 * SOME


def test_l1_to_l14_bookies_are_silent(cluster: Cluster) -> None:
    """Bookies are stopped and cut off, and the ledger is left open, so that recovery finds its end."""
    play(cluster, silences, closes=False)


def test_l1_to_l14_the_metadata_are_lost_for_a_while(cluster: Cluster) -> None:
    """The store and a bookie are killed: no ensemble can change, and acknowledged entries stay."""

    async def lose(workload: Workload) -> None:
        await workload.more(SOME)
        bookie = (await ensemble(workload))[0]
        store = workload.cluster.bookies[0]
        store.kill()
        bookie.kill()
        await asyncio.to_thread(store.start)
        await asyncio.to_thread(bookie.start)
        await workload.more(SOME)

    play(cluster, lose)


def test_l1_to_l14_a_disk_runs_full(cluster: Cluster, tmp_path: Path) -> None:
    """A bookie that becomes read-only is replaced, and can be used again later."""
    directory = tmp_path / "disk"
    directory.mkdir()
    try:
        with SmallDisk(directory, "tmpfs", 96 * MIB) as disk:
            small = cluster.join(ledgerDirectories=str(directory), diskCheckInterval="50")
            small.within = disk.enter

            async def fill_and_free(workload: Workload) -> None:
                await workload.more(SOME)
                disk.fill()
                await workload.more(3 * SOME)
                disk.free()
                await workload.more(SOME)

            try:
                play(cluster, fill_and_free)
            finally:
                cluster.bookies.remove(small)
                small.kill()
    except Unavailable as reason:
        pytest.skip(f"NOT TESTED: {reason}")


@pytest.mark.interop
def test_l1_to_l14_zookeeper_is_lost_for_a_while(tmp_path: Path, own_zookeeper: ZooKeeperServer) -> None:
    """ZooKeeper is frozen while nothing else fails, which no writer notices, and then killed together with a bookie."""

    async def lose(workload: Workload) -> None:
        await workload.more(SOME)
        bookie = (await ensemble(workload))[0]
        own_zookeeper.freeze()
        await workload.more(SOME)
        own_zookeeper.thaw()
        own_zookeeper.kill()
        bookie.kill()
        await asyncio.to_thread(own_zookeeper.start)
        await asyncio.to_thread(bookie.start)
        await workload.more(SOME)

    uri = f"zk+hierarchical://{own_zookeeper.address}{own_zookeeper.new_root()}"
    cluster = Cluster(tmp_path, 4, uri)
    subprocess.run(cluster.bookies[0].command("--init-cluster"), check=True, capture_output=True)
    try:
        play(cluster, lose, zkTimeout=10_000)
    finally:
        cluster.kill()


def test_l1_to_l14_members_of_etcd_are_lost(tmp_path: Path, three_etcds: EtcdCluster) -> None:
    """One of three members hangs while a bookie is killed, another one is killed, and then there is no majority."""
    first, second, third = three_etcds.members

    async def lose(workload: Workload) -> None:
        await workload.more(SOME)
        bookie, other = (await ensemble(workload))[:2]
        first.freeze()
        bookie.kill()
        await workload.more(SOME)
        first.thaw()
        await asyncio.to_thread(bookie.start)
        second.kill()
        await workload.more(SOME)
        first.freeze()  # only one of three is left
        await workload.more(SOME)
        other.kill()
        first.thaw()
        await asyncio.to_thread(second.restart)
        await asyncio.to_thread(other.start)
        third.kill()
        await workload.more(SOME)
        await asyncio.to_thread(third.restart)

    cluster = Cluster(tmp_path, 4, f"etcd://{three_etcds.addresses}{three_etcds.new_scope()}")
    subprocess.run(cluster.bookies[0].command("--init-cluster"), check=True, capture_output=True)
    try:
        workload = play(cluster, lose, zkTimeout=10_000)
        assert workload.acked >= 3 * SOME
    finally:
        cluster.kill()
