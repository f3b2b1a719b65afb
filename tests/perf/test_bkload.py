"""The load generator's figures are right: it runs against the plain C bound servers; counts and codes are checked."""

import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.perf.driving import run_load

LEDGER, ENTRIES, SIZE = 7, 2000, 100
Load = Callable[..., dict[str, Any]]


def run_server(command: list[str]) -> Iterator[tuple[int, int]]:
    """Start a bound server; yield its port and process id, and kill it afterwards."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield int(server.stdout.readline()), server.pid
        server.kill()


@pytest.fixture
def read_server(programs: dict[str, Path]) -> Iterator[tuple[int, int]]:
    """Run a server that has one ledger in memory."""
    yield from run_server([str(programs["read_bound"]), str(LEDGER), str(ENTRIES), str(SIZE), "0"])


@pytest.fixture
def add_server(programs: dict[str, Path], tmp_path: Path) -> Iterator[tuple[int, int]]:
    """Run a server that journals adds into a small file, so that it wraps around."""
    yield from run_server([str(programs["add_bound"]), str(tmp_path), "16", "16"])


@pytest.fixture
def load(programs: dict[str, Path]) -> Load:
    """Return a function that runs bkload with options as keywords, `True` for a flag; `code` is the exit code."""

    def run(mode: str, code: int = 0, **options: object) -> dict[str, Any]:
        return run_load(programs["bkload"], mode, code, **{"size": SIZE, **options})

    return run


def percentiles_rise(latency: dict[str, float]) -> bool:
    """Check that 0 < p50 <= p90 <= p99 <= p99.9 <= max."""
    steps = [latency[name] for name in ("p50", "p90", "p99", "p999", "max")]
    return steps == sorted(steps) and steps[0] > 0


@pytest.mark.parametrize("order", [{}, {"random": True}], ids=["sequential", "random"])
@pytest.mark.parametrize(("outstanding", "connections", "threads"), [(1, 1, 1), (300, 1, 1), (50, 3, 2)])
@pytest.mark.thorough
def test_single_reads_are_counted_and_verified(
    load: Load, read_server: tuple[int, int], order: dict[str, bool], outstanding: int, connections: int, threads: int
) -> None:
    """Exactly `count` responses, each verified by its digest, over any number of connections and in either order."""
    port, _ = read_server
    result = load("read", port=port, first_ledger=LEDGER, entries=ENTRIES, outstanding=outstanding, count=5000,
                  connections=connections, threads=threads, verify=1, **order)  # fmt: skip
    assert (result["operations"], result["entries"], result["verified"]) == (5000, 5000, 5000)
    assert (result["errors"], result["bad"], result["lost"]) == ({}, 0, 0)
    assert percentiles_rise(result["latency_us"])
    assert result["mb_s"] == pytest.approx(result["entries_s"] * (36 + SIZE) / 1e6, rel=1e-3, abs=1e-3)


@pytest.mark.parametrize(("batch", "outstanding"), [(1, 1), (100, 4), (333, 2), (2000, 3)])
def test_batch_reads_wrap_around_and_count_entries(
    load: Load, read_server: tuple[int, int], batch: int, outstanding: int
) -> None:
    """Full batches only, which wrap at the ledger's end; every entry's length, ids and digest are correct."""
    port, _ = read_server
    result = load("batch", port=port, first_ledger=LEDGER, entries=ENTRIES, batch=batch, outstanding=outstanding,
                  count=60, verify=1)  # fmt: skip
    assert (result["operations"], result["entries"], result["verified"]) == (60, 60 * batch, 60 * batch)
    assert (result["errors"], result["bad"], result["lost"]) == ({}, 0, 0)


def test_error_codes_are_counted_by_code(load: Load, read_server: tuple[int, int]) -> None:
    """An unknown ledger is code 1, a missing entry code 2; errors do not count as entries, and the exit code is 1."""
    port, _ = read_server
    unknown = load("read", code=1, port=port, first_ledger=LEDGER + 1, entries=10, count=20)
    beyond = load("batch", code=1, port=port, first_ledger=LEDGER, first_entry=ENTRIES, entries=100, count=5)
    assert (unknown["errors"], unknown["entries"]) == ({"1": 20}, 0)
    assert (beyond["errors"], beyond["entries"]) == ({"2": 5}, 0)


def test_answers_of_another_size_are_bad(load: Load, read_server: tuple[int, int]) -> None:
    """The generator does not accept a size that it did not expect."""
    port, _ = read_server
    assert load("read", code=1, port=port, size=SIZE + 1, first_ledger=LEDGER, entries=10, count=20)["bad"] == 20
    assert load("batch", code=1, port=port, size=SIZE - 1, first_ledger=LEDGER, entries=100, count=20)["bad"] == 20


@pytest.mark.parametrize("size", [0, 100, 1024, 4096])
def test_fill_writes_every_ledger_to_the_same_length(load: Load, add_server: tuple[int, int], size: int) -> None:
    """`fill` writes entries x ledgers, group after group, past the end of the bound's journal and log files."""
    port, pid = add_server
    result = load("fill", port=port, size=size, ledgers=6, entries=2000, connections=3, outstanding=200, server_pid=pid)
    assert (result["operations"], result["written"]["entries_min"]) == (12_000, 2000)
    assert (result["errors"], result["bad"], result["lost"]) == ({}, 0, 0)
    assert result["server"]["cpu_s"] > 0
    assert result["server"]["peak_rss_mb"] >= result["server"]["rss_mb"] > 0


def test_a_fixed_rate_is_not_exceeded(load: Load, read_server: tuple[int, int]) -> None:
    """There are no more requests than the rate allows, however fast the server is."""
    port, _ = read_server
    result = load("read", port=port, first_ledger=LEDGER, entries=ENTRIES, outstanding=500, rate=2000, seconds=0.5)
    assert 0 < result["operations"] <= 1001
    assert result["rate"] == 2000


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"count": 1, "outstanding": "many"}, r"--outstanding many: expected a number"),
        ({}, r"give --seconds, --count, or both"),
        ({"count": 1, "connections": 2}, r"--outstanding 1: fewer than --connections 2"),
        ({"count": 1, "port": 1}, r"cannot connect to 127.0.0.1:1: "),
    ],
)
def test_bad_options_are_named(load: Load, options: dict[str, object], message: str) -> None:
    """One line has the option and its value; the exit code is 2."""
    assert re.search(message, load("read", code=2, entries=1, **options)["stderr"])
