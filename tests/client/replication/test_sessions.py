"""Auto-recovery whose session with ZooKeeper ends, or whose ZooKeeper goes away and comes back."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from bookie.metadata.records.ledger_metadata import LedgerState
from tests.client.replication.conftest import GHOST, SESSION_TIMEOUT_MS, SOON, Cluster, comes_true
from tests.fixtures.bookies import ROOT
from tests.fixtures.frozen import freeze, thaw
from tests.fixtures.zookeeper import ZooKeeperServer

pytestmark = [
    pytest.mark.interop,
    pytest.mark.parametrize("shared_cluster", ["zookeeper"], indirect=True),
    pytest.mark.leaks("gRPC keeps threads of its own for the life of the process"),
]
ALONE = """
import ast, logging, sys
from bookie.client.replication.service import run_alone
logging.basicConfig(level=logging.INFO, filename=sys.argv[4], format="%(asctime)s %(message)s")
run_alone(sys.argv[1], sys.argv[2], ast.literal_eval(sys.argv[3]))
"""


@contextmanager
def alone(cluster: Cluster, name: str, log: Path, **keys: Any) -> Iterator[subprocess.Popen[bytes]]:
    """Auto-recovery in a process of its own."""
    log.touch()
    given = repr({**SOON, "zkTimeout": SESSION_TIMEOUT_MS, **keys})
    command = [sys.executable, "-c", ALONE, name, cluster.uri, given, str(log)]
    with subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, cwd=ROOT) as process:
        try:
            yield process
        finally:
            process.kill()


def wait_until(fits: Any) -> None:
    """Block until a condition holds, for half a minute at most."""

    async def bounded() -> None:
        async with asyncio.timeout(30):
            await comes_true(fits)

    asyncio.run(bounded())


def test_bug_49_an_expired_session_ends_office_and_locks(cluster: Cluster, tmp_path: Path) -> None:
    """An auditor stopped past its session is succeeded by another; when continued, it fences nothing and stands
    again.

    bookkeeper#1126, #2302. Its successor holds back, from the beginning, the open ledger that it held back.
    """
    replication, election = cluster.driver.replication, cluster.driver.election
    one, two, *_ = cluster.ids
    ledger = asyncio.run(cluster.write([(0, (one, GHOST, two))], 10, ack_quorum=2, closed=False))
    replication.mark(ledger, [GHOST], 1)
    log = tmp_path / "first.log"
    with alone(cluster, "first", log, openLedgerRereplicationGracePeriod=3000) as first:
        wait_until(lambda: replication.holders() == {ledger: "first"} and election.auditor() == "first")
        freeze(first.pid)
        second_log = tmp_path / "second.log"
        with alone(cluster, "second", second_log, openLedgerRereplicationGracePeriod=600_000) as second:
            wait_until(lambda: replication.holders() == {ledger: "second"} and election.auditor() == "second")
            thaw(first.pid)
            wait_until(lambda: log.read_text().count("session expired, restarting auditor and worker") == 1)
            assert (replication.holders(), election.auditor()) == ({ledger: "second"}, "second")
            assert cluster.driver.ledgers.read(ledger).value.state is LedgerState.OPEN
            second.terminate()
            assert second.wait(30) == 0
        metadata = cluster.wait_without(ledger, GHOST)
        assert (metadata.state, metadata.last_entry, election.auditor()) == (LedgerState.CLOSED, 10, "first")
    cluster.holds(ledger, metadata)


def test_bug_50_a_store_that_comes_and_goes(cluster: Cluster, zookeeper: ZooKeeperServer, tmp_path: Path) -> None:
    """After ZooKeeper was restarted, every bookie and the auditor are as before; a ledger that is marked then is
    copied.

    bookkeeper#3094, #2760, #4172.
    """
    one, two, *_ = cluster.ids
    ledger = asyncio.run(cluster.write([(0, (one, GHOST, two))], 10))
    with alone(cluster, "auto", tmp_path / "auto.log") as process:
        wait_until(lambda: cluster.driver.election.auditor() == "auto")
        for _ in range(2):
            zookeeper.kill()
            zookeeper.start()
        wait_until(lambda: cluster.driver.bookies.present(read_only=False) == set(cluster.ids))
        cluster.driver.replication.mark(ledger, [GHOST], 1)
        cluster.holds(ledger, cluster.wait_without(ledger, GHOST))
        wait_until(lambda: cluster.driver.election.auditor() == "auto")
        process.terminate()
        assert process.wait(30) == 0
