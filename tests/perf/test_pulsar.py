"""What `perf.pulsar` takes from the output of Pulsar's load generator, and the tables that it makes of it."""

import json
import signal
import subprocess
import sys

import pytest

from perf.pulsar.programs import Load
from perf.pulsar.table import RESULTS, table
from perf.side_by_side.card import ROOT, newest_run

OUTPUT = """07:45:13.012 INFO PerformanceProducer Created 1 producers {}
07:45:13.012 INFO PerformanceProducer Aggregated throughput stats --- 40002 records sent --- 3993.500 msg/s --- 31.199 \
Mbit/s  {}
07:45:13.073 INFO PerformanceProducer Aggregated latency stats --- Latency: mean:   4.899 ms - med:   1.694 - 95pct:  \
20.628 - 99pct:  57.697 - 99.9pct:  76.864 - 99.99pct:  80.051 - 99.999pct: 100.770 - Max: 100.770 {}
"""


def load(text: str) -> Load:
    """A program that prints the text and ends."""
    command = [sys.executable, "-c", f"print({text!r})"]
    return Load(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))


def test_a_result_is_read() -> None:
    """The aggregated lines count."""
    with load(OUTPUT) as running:
        done = running.result()
    assert (done.messages, done.rate, done.p99_ms) == (40002, 3993.5, 57.697)


def test_no_result_is_an_error_with_the_output() -> None:
    """A generator that died says why."""
    with (
        load("Exception: connection refused") as running,
        pytest.raises(RuntimeError, match="no result:\nException: connection refused"),
    ):
        running.result()


def test_a_generator_that_does_not_end_is_killed() -> None:
    """The error shows what it has printed until then."""
    endless = "import signal; print('refused', flush=True); signal.pause()"
    process = subprocess.Popen([sys.executable, "-c", endless], stdout=subprocess.PIPE, text=True)
    with Load(process, wait_s=1) as running, pytest.raises(RuntimeError, match="did not end in 1 s:\nrefused"):
        running.result()
    assert process.returncode == -signal.SIGKILL


def test_a_load_ends_with_its_block() -> None:
    """A generator that hangs does not outlive the measurement that failed."""
    process = subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with pytest.raises(KeyboardInterrupt), Load(process):
        raise KeyboardInterrupt
    assert process.returncode == -signal.SIGKILL


def row(load: str, bookies: str, date: str, **figures: float) -> str:
    """A line of results."""
    cpu = {"bookies": 1.0, "broker": 2.0}
    spent = {"cpu": cpu} if load == "steady" else {"produce_cpu": cpu, "consume_cpu": cpu}
    return json.dumps({"load": load, "bookies": bookies, "topics": 1, **figures, **spent, "card": {"date": date}})


def test_medians_of_the_newest_run() -> None:
    """Rows of an earlier run are left out."""
    rows = [row("unthrottled", "ours", "1", produced_s=1e9, consumed_s=1e9)]
    rows += [row("unthrottled", "ours", "2", produced_s=rate, consumed_s=2 * rate) for rate in (1000, 2000, 6000)]
    rows += [row("unthrottled", "java", "2", produced_s=500, consumed_s=1000)]
    rows += [row("steady", kind, "2", produce_p99_ms=7.4, tail_p99_ms=9.6) for kind in ("ours", "java")]
    lines = table(newest_run(rows))
    assert "| 1 | ours | 2,000 | 1.0 | 2.0 | 4,000 | 1.0 | 2.0 |" in lines
    assert "| 1 | Java | 500 | 1.0 | 2.0 | 1,000 | 1.0 | 2.0 |" in lines
    assert "| 1 | ours | 7 | 10 | 1.0 | 2.0 |" in lines


def test_the_readme_has_this_table() -> None:
    """perf/README.md shows what the results say."""
    rows = newest_run(RESULTS.read_text().splitlines())
    assert "\n".join(table(rows)) in (ROOT / "perf/README.md").read_text()
