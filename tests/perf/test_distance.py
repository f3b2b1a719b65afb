"""The network of `perf.distance`, where there can be one, and the tables of its results."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from perf.distance.network import Network, Unavailable, network
from perf.distance.run import ROWS
from perf.distance.table import MORE, newest, table

ROOT = Path(__file__).resolve().parents[2]
MBIT_S = 20
RTT_MS = 40
PORT = 5077
CONNECT = """
import socket, sys, time
began = time.monotonic()
try:
    socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=float(sys.argv[3])).close()
    print(time.monotonic() - began)
except TimeoutError:
    print("timeout")
"""
ROW = {"mbit_s": 1000, "rtt_ms": 10.0, "loss_percent": 0.0, "stream_three_mb_s": 102.4, "stream_down_mb_s": 100.0,
       "asyncio_1": 99.6, "asyncio_1000": 20000.0, "asyncio_10000": 30000.0, "threads_1": 90.0, "threads_1000": 10000.0,
       "threads_10000": 28000.0, "reads_mb_s": 95.0, "copy_mb_s": 80.4, "recovery_s": 0.345, "gap_frozen_s": 2.0,
       "gap_cut_s": 1.999, "java_1": 80.0, "java_1000": 8000.0, "java_10000": 14000.0,
       "java_reads_mb_s": 50.0}  # fmt: skip
LOST = {"mbit_s": 1000, "rtt_ms": 10.0, "loss_percent": 0.1, "stream_three_mb_s": 51.2, "stream_down_mb_s": 50.0,
        "asyncio_10000": 15000.0, "threads_10000": 15000.0, "reads_mb_s": 45.0, "copy_mb_s": 40.0,
        "recovery_s": 0.4}  # fmt: skip


@pytest.fixture
def net() -> Iterator[Network]:
    """Two hosts, with a stream server on the second one."""
    try:
        with network(2, MBIT_S, RTT_MS) as made:
            words = [*made.on(1), sys.executable, "-m", "perf.distance.stream", "serve"]
            with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True) as serving:
                try:
                    assert serving.stdout is not None
                    assert serving.stdout.readline() == "ready\n"
                    yield made
                finally:
                    serving.kill()
    except Unavailable as error:
        pytest.skip(f"there are no network namespaces: {error}")


def connected(net: Network, limit_s: float) -> str:
    """Return how many seconds a connection took from the first host to the second one, or `timeout`."""
    words = [*net.on(0), sys.executable, "-c", CONNECT, net.address(1), str(PORT), str(limit_s)]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def test_hosts_are_far_apart(net: Network) -> None:
    """A connection takes a round trip, and a stream is no faster than the link."""
    assert float(connected(net, 60)) >= RTT_MS / 1000
    words = [*net.on(0), sys.executable, "-m", "perf.distance.stream", "up", "1", net.address(1)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    assert 0 < float(done.stdout) <= MBIT_S / 8


def test_a_host_that_is_cut_off_cannot_be_reached(net: Network) -> None:
    """Its packets are dropped, until it joins again."""
    net.cut(1)
    assert connected(net, 0.2) == "timeout"
    net.join(1)
    assert float(connected(net, 60)) > 0


def test_the_tables() -> None:
    """The newest row of a distance counts; the copies of all payloads are compared with three streams."""
    lines = table(newest(map(json.dumps, [dict(ROW, asyncio_1=1.0), LOST, ROW])))
    assert lines == [
        "| round trip | loss | adds: outstanding | asyncio /s | of TCP | threads /s | of TCP | Java /s | of TCP |",
        "|---|---|---|---|---|---|---|---|---|",
        "| 10 ms | 0 % | 1 | 100 |  | 90 |  | 80 |  |",
        "| 10 ms | 0 % | 1,000 | 20,000 | 0.60 | 10,000 | 0.30 | 8,000 | 0.24 |",
        "| 10 ms | 0 % | 10,000 | 30,000 | 0.90 | 28,000 | 0.84 | 14,000 | 0.42 |",
        "| 10 ms | 0.1 % | 10,000 | 15,000 | 0.90 | 15,000 | 0.90 |  |  |",
        "",
        "| " + " | ".join(MORE) + " |",
        "|---|---|---|---|---|---|---|---|---|---|",
        "| 10 ms | 0 % | 95 | 0.95 | 50 | 0.50 | 80 | 0.34 | 2.00 | 2.00 |",
        "| 10 ms | 0.1 % | 45 | 0.90 |  |  | 40 | 0.40 |  |  |",
    ]


def test_the_readme_shows_the_results() -> None:
    """The tables of perf/README.md are those of the newest results."""
    wanted = "\n".join(table(newest(ROWS.read_text().splitlines())))
    assert wanted in (ROOT / "perf/README.md").read_text()
