"""Apache BookKeeper's auto-recovery and ours in one cluster: one election, one queue, and the same replicas."""

import asyncio
from pathlib import Path

import pytest

from bookie.client.replication.auditor import Auditor
from bookie.client.replication.worker import ReplicationWorker
from tests.client.replication.conftest import GHOST, PASSWORD, SIZE, Cluster, comes_true, until
from tests.fixtures.java_peer import JavaPeer
from tests.fixtures.java_process import JavaBookie
from tests.fixtures.logged_process import LoggedProcess
from tests.fixtures.ports import free_port
from tests.interop.driver import Driver

pytestmark = pytest.mark.interop
LAST = 30


@pytest.mark.parametrize("shared_cluster", ["zookeeper"], indirect=True)
def test_java_and_ours_share_queue_and_election(cluster: Cluster, java_peer: JavaPeer, tmp_path: Path) -> None:
    """Java's worker copies what our auditor marks; then Java's auditor is elected, and our worker copies what it
    marks.

    The Java client then reads both ledgers, whose first places were lost.
    """
    one, two, *_ = cluster.ids
    by_java = asyncio.run(cluster.write([(0, (GHOST, one, two))], LAST))
    by_ours = next(cluster.ledgers)
    driver = cluster.driver
    java = JavaBookie(java_peer, tmp_path / "java", free_port(), cluster.uri, {"rwRereplicateBackoffMs": "100"})
    main = "org.apache.bookkeeper.replication.AutoRecoveryMain"
    process = LoggedProcess(java_peer.command(main, "--conf", str(java.write_conf())), tmp_path / "autorecovery.log")

    async def ours_audits() -> None:
        async with cluster.environment("10.0.0.1:3181") as environment:

            async def java_copies() -> None:
                await comes_true(lambda: environment.counters.elected_now == 1)
                await asyncio.to_thread(process.start)
                await asyncio.to_thread(cluster.wait_without, by_java, GHOST)
                assert await asyncio.to_thread(driver.election.auditor) == "10.0.0.1:3181"
                await cluster.write([(0, (GHOST, one, two))], LAST, ledger=by_ours)
                assert await asyncio.to_thread(driver.replication.marked, by_ours) is None

            await until(Auditor(environment).run(), java_copies())

    async def ours_copies() -> None:
        async with cluster.environment() as environment:
            await until(ReplicationWorker(environment).run(), comes_true(lambda: environment.counters.ledgers == 1))

    try:
        with driver.replication.lock(by_ours) as held:
            assert held
            asyncio.run(ours_audits())
            process.wait_until(lambda: driver.election.auditor() == java.id, "Java's auditor elected")
            process.wait_until(lambda: driver.replication.marked(by_ours) is not None, "a mark of Java's auditor")
            process.kill()
        asyncio.run(ours_copies())
    finally:
        process.kill()
    client = Driver(java_peer, tmp_path / "client.log")
    client.start()
    try:
        client.call("connect", uri=cluster.uri)
        for ledger in (by_java, by_ours):
            metadata = cluster.wait_without(ledger, GHOST)
            cluster.holds(ledger, metadata)
            handle = client.call("open", ledger=ledger, password=PASSWORD.decode())["handle"]
            read = client.call("read", handle=handle, first=0, last=LAST, size=SIZE)
            assert (read["entries"], read["wrong"]) == (LAST + 1, 0)
    finally:
        client.stop()
