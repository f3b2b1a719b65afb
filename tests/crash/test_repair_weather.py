"""Scrub and repair during several failures at once: an unresponsive peer, an operator who disconnects, a kill -9 in
the middle of a repair, then a peer that is down. Nothing is denied meanwhile, and finally everything is repaired.
"""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.crash.flips.cluster import CALL_S, LEDGERS, Answers, Cluster
from tests.crash.flips.files import LogTables, change

pytestmark = [
    pytest.mark.crash,
    pytest.mark.leaks("gRPC keeps its own threads and their descriptors as long as the process lives"),
]

FLIPS = 300
BKADMIN = [sys.executable, "-m", "bookie_admin.bkadmin.main"]


def damage(cluster: Cluster, rng: random.Random) -> None:
    """Flip bits of entries of closed ledgers, which all replicas have."""
    tables = LogTables(cluster.victim.ledgers / "current")
    with cluster.quiet():
        cluster.flush()
        tables.look()
        flips = [tables.choose(rng) for _ in range(2 * FLIPS)]
        for one in [each for each in flips if each.live and each.entry and each.entry[0] < LEDGERS][:FLIPS]:
            change(one)


def asked(cluster: Cluster) -> Answers:
    """Return the bookie's answers, none of which may be wrong or a denial."""
    answers = cluster.ask()
    assert not answers.wrong
    assert not answers.denied
    return answers


def test_scrub_and_repair_in_bad_weather(tmp_path: Path) -> None:
    """Three hundred entries are damaged, and finally each is read from the bookie that was damaged."""
    rng = random.Random(14)
    with Cluster.running(tmp_path, rng) as cluster:
        near, far = cluster.bookies[:2]
        victim = cluster.victim
        damage(cluster, rng)
        with cluster.quiet():
            near.freeze()
            command = [*BKADMIN, "scrub", "start", "--wait", "--admin", victim.admin]
            with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as operator:
                answers = asked(cluster)  # reading a damaged entry queues its repair
                assert answers.errors
                operator.send_signal(signal.SIGINT)
                operator.wait(CALL_S)
            cluster.repaired(1)
            victim.kill()
            victim.start()
            asked(cluster)
            near.thaw()
            far.kill()
            cluster.scrub()
            deadline = time.monotonic() + CALL_S
            while asked(cluster).errors:
                assert time.monotonic() < deadline, cluster.victim.log_text()[-3000:]
                cluster.settled()
                cluster.rest()
            far.start()
