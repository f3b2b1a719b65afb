"""Exactly once under fire: drivers, Python workers and bookies are killed while a stream goes from a log into a log.

BOOKIE_SPARK_RESTARTS is how often the driver is killed (1); BOOKIE_SPARK_SEED repeats a course.
"""

import os
import random
import signal
import subprocess
import sys
import zlib
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Any

import numpy as np
import pytest

from bookie.client import BookKeeper
from bookie.local import LocalCluster
from bookie.local.cluster import LocalBookie
from tests.fixtures.spark import java_of_spark

pytest.importorskip("pyspark.sql", reason="pyspark is not installed (make spark)", exc_type=ImportError)

pytestmark = [pytest.mark.crash, pytest.mark.leaks("gRPC keeps its threads as long as the process lives")]

ROOT = Path(__file__).parents[3]
RESTARTS = int(os.environ.get("BOOKIE_SPARK_RESTARTS", "1"))
SEED = int(os.environ.get("BOOKIE_SPARK_SEED", random.SystemRandom().randrange(1 << 32)))
LEDGERS_A_ROUND, ROWS_A_LEDGER = 2, 600
LEDGERS_OF_A_LIFE = 6
"""The most ledgers that tasks create before the driver is killed. A round takes about eight, so it is not over."""
REST_S_MAX = 0.5
PATIENCE_S = 600.0


class Fire:
    """Decides by a seeded random generator what is killed, and when."""

    def __init__(self, cluster: LocalCluster, bk: BookKeeper, directory: Path, log: str) -> None:
        self.seeded_random = random.Random(SEED)
        self.cluster = cluster
        self.log = log
        self.bk = bk
        self.directory = directory
        self.command = [sys.executable, str(ROOT / "tests/spark/sink/fire.py"), cluster.uri]
        self.command += ["input", str(directory / "checkpoint"), log]
        self.errors = directory / "driver.log"
        self.killed: dict[str, int] = {"driver": 0, "worker": 0, "bookie": 0}
        self.rows: list[bytes] = []
        self._never = Event()

    def feed(self, number: int) -> None:
        """Add ledgers for two more batches."""
        for which in range(LEDGERS_A_ROUND):
            rows = [b"%d %d %d %s" % (number, which, row, b"x" * (row % 90)) for row in range(ROWS_A_LEDGER)]
            with self.bk.create_ledger(ensemble_size=3, write_quorum_size=3) as ledger:
                ledger.append_all(b"".join(rows), np.cumsum([0, *map(len, rows)]))
            self.bk.logs.append("input", [ledger.id])
            self.rows += rows

    def drive(self, *, to_the_end: bool) -> None:
        """Run the driver until it ends or is killed, while its workers and bookies are killed too."""
        env = os.environ | {
            "JAVA_HOME": str(java_of_spark().resolve().parent.parent),
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": str(ROOT),
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        with self.errors.open("ab") as errors:
            driver = subprocess.Popen(
                self.command,
                cwd=self.directory,
                env=env,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )
        assert driver.stdout is not None
        try:
            assert driver.stdout.readline() == b"started\n", self.errors.read_text(errors="replace")[-2000:]
            if to_the_end:
                assert driver.wait(PATIENCE_S) == 0, self.errors.read_text(errors="replace")[-2000:]
                return
            before = self._written()
            moments = sorted(self.seeded_random.randint(0, LEDGERS_OF_A_LIFE) for _ in range(4))
            self._await(driver, before + moments[0])
            self._kill_worker(driver.pid)
            self._await(driver, before + moments[1])
            bookie = self._kill_bookie()
            self._await(driver, before + moments[2])
            back = self.seeded_random.random() < 0.5
            if back:
                bookie.start()
            self._await(driver, before + moments[3])
            if driver.poll() is None:
                self.killed["driver"] += 1
                os.killpg(driver.pid, signal.SIGKILL)
            if not back:
                bookie.start()
        finally:
            with suppress(ProcessLookupError):
                os.killpg(driver.pid, signal.SIGKILL)
            driver.wait()
            driver.stdout.close()

    def _written(self) -> int:
        """Return how many ledgers were created, including deleted ones, because their ids grow."""
        return max(self.bk.list_ledgers())

    def _await(self, driver: subprocess.Popen[bytes], newest: int) -> None:
        """Wait until tasks have created a number of ledgers, or none will, and a moment longer, so that any step of a
        batch may be in progress.
        """
        end = monotonic() + PATIENCE_S
        while self._written() < newest and driver.poll() is None:
            assert monotonic() < end, self.errors.read_text(errors="replace")[-2000:]
            self._never.wait(0.02)
        self._never.wait(self.seeded_random.uniform(0, REST_S_MAX))

    def _kill_worker(self, driver: int) -> None:
        workers = [pid for pid in below(driver) if b"pyspark" in command_of(pid) and b"java" not in command_of(pid)]
        if workers:
            self.killed["worker"] += 1
            with suppress(ProcessLookupError):
                os.kill(self.seeded_random.choice(workers), signal.SIGKILL)

    def _kill_bookie(self) -> LocalBookie:
        bookie = self.seeded_random.choice(list(self.cluster)[1:])  # the first bookie has the metadata of all
        self.killed["bookie"] += 1
        bookie.kill()
        return bookie


def below(parent: int) -> Iterator[int]:
    """Yield all processes below one."""
    for task in Path(f"/proc/{parent}/task").glob("*/children"):
        with suppress(OSError):
            for child in map(int, task.read_text().split()):
                yield child
                yield from below(child)


def command_of(pid: int) -> bytes:
    """Return the command line of a process; empty once it is gone."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def test_each_row_is_in_the_log_once(tmp_path: Path) -> None:
    """Whatever was killed, the log has exactly the input, by count and checksum, and orphans can be deleted."""
    from bookie.spark.sink import orphans

    java_of_spark()
    with LocalCluster(4) as cluster, BookKeeper(cluster.uri) as bk:
        fire = Fire(cluster, bk, tmp_path, "fire")
        for number in count():
            fire.feed(number)
            last = fire.killed["driver"] == RESTARTS
            fire.drive(to_the_end=last)
            print(f"life {number}: killed {fire.killed}", flush=True)
            if last:
                break
        ledgers = bk.logs.get("fire").value.ledgers
        found = [bytes(entry.data) for ledger in ledgers for entry in entries_of(bk, ledger)]
        print(f"seed {SEED}: killed {fire.killed}, {len(found)} rows in {len(ledgers)} ledgers")
        assert len(found) == len(fire.rows), f"seed {SEED}"
        assert checksum(found) == checksum(fire.rows), f"seed {SEED}"
        known = {*ledgers, *bk.logs.get("input").value.ledgers}
        lost = set(bk.list_ledgers()) - known
        assert set(orphans.clean(bk, ["fire"], now_ms=1 << 50)) == lost
        assert set(bk.list_ledgers()) == known


def entries_of(bk: BookKeeper, ledger: int) -> Iterator[Any]:
    """Return all entries of a ledger."""
    with bk.open_ledger(ledger) as reader:
        for batch in reader.batches():
            yield from batch


def checksum(rows: list[bytes]) -> int:
    """Return a checksum of all rows that does not depend on their order, because the files of a partition have none."""
    return zlib.crc32(b"\n".join(sorted(rows)))
