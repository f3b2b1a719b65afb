"""Auto-recovery as operators run it: inside `bookie-server`, and in a process of its own."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bookie.metadata import open_driver
from tests.client.replication.conftest import GHOST, SOON, Cluster, comes_true
from tests.fixtures.bookies import ROOT, BookieProcess
from tests.fixtures.whole_bookie import whole_bookie

pytestmark = pytest.mark.leaks("gRPC keeps threads of its own for the life of the process")
ALONE = "import sys; from bookie.client.replication.service import run_alone; run_alone('alone', sys.argv[1], {})"


def test_bookie_server_hosts_it(bookies: Callable[..., list[BookieProcess]]) -> None:
    """The bookies elect an auditor, find a ledger and copy it; when the auditor stops, another is elected."""
    keys = {name: str(value) for name, value in SOON.items()}
    processes = bookies(3, autoRecoveryDaemonEnabled="true", **keys)
    one, two, three = (process.id for process in processes)
    uri = f"grpc://127.0.0.1:{processes[0].settings['adminPort']}"
    driver = open_driver(uri)
    driver.start()
    cluster = Cluster(uri, processes, driver)
    ledger = asyncio.run(cluster.write([(0, (one, GHOST))], 10))
    driver.replication.mark(ledger, [GHOST], 1)
    cluster.holds(ledger, cluster.wait_without(ledger, GHOST))
    asyncio.run(comes_true(lambda: driver.election.auditor() in {one, two, three}))
    for process in processes[1:]:
        assert process.stop() == 0, process.log_text()
    asyncio.run(comes_true(lambda: driver.election.auditor() == one))
    driver.stop()


def test_a_setting_that_is_wrong_refuses_the_start(new_bookies: Callable[..., list[BookieProcess]]) -> None:
    """A wrong setting refuses the start, with one line that names it."""
    (process,) = new_bookies(1, autoRecoveryDaemonEnabled="true", ensemblePlacementPolicy="nonsense")
    assert process.run() == 1
    assert "ensemblePlacementPolicy='nonsense': it must be one of" in process.log_text()


def test_the_bookie_shows_the_weights_of_its_client(tmp_path: Path) -> None:
    """With weighted placement, the bookie's metrics have the weights as its own client knows them."""
    keys = {"diskWeightBasedPlacementEnabled": "true", "getBookieInfoIntervalSeconds": "60"}
    with whole_bookie(tmp_path, adminPort="0", autoRecoveryDaemonEnabled="true", **keys) as one:

        def weights() -> dict[str, float]:
            shown = {family.name: family.samples for family in one.bookie.metrics()}
            samples = shown.get("bookie_client_placement_capped_weight_bytes", ())
            return {sample.labels[0][1]: sample.value for sample in samples if sample.value > 1}

        asyncio.run(comes_true(lambda: weights().keys() == {one.bookie.bookie_id}))
        room = shutil.disk_usage(tmp_path)
        assert 0 < weights()[one.bookie.bookie_id] <= room.total


@pytest.mark.thorough
def test_it_runs_alone(cluster: Cluster) -> None:
    """A process without a bookie audits and copies, until SIGTERM."""
    one, two, *_ = cluster.ids
    ledger = asyncio.run(cluster.write([(0, (one, GHOST, two))], 10))
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen([sys.executable, "-c", ALONE, cluster.uri], env=environment, cwd=ROOT) as process:
        try:
            cluster.holds(ledger, cluster.wait_without(ledger, GHOST))
            assert cluster.driver.election.auditor() == "alone"
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0
        finally:
            process.kill()
    assert cluster.driver.election.auditor() is None
