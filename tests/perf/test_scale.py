"""The tables and the model of `perf.scale`."""

import json
from pathlib import Path
from typing import Any

import pytest

from perf.scale.__main__ import ROWS, plan, settings
from perf.scale.disks import Disks
from perf.scale.shapes import OF_LATENCY, ON_OWN_DISKS, SHAPES, kind_of
from perf.scale.table import (
    LARGE,
    ceilings,
    newest,
    newest_of_latency,
    newest_on_own_disks,
    of_latency,
    of_own_disks,
    tables,
)
from perf.side_by_side.drive import bkload
from perf.side_by_side.servers import OurBookie

ROOT = Path(__file__).resolve().parents[2]
MICROS = {"io": 0.5, "journal": 0.2, "flush": 0.25, "other": 0.05}


def row(work: str = "adds", loops: int = 2, **more: Any) -> dict[str, Any]:
    shape = {"work": work, "cpus": 2, "loops": loops, "journals": 1, "directories": 1}
    return {**shape, "entries_s": 500_000, "p99_us": 2500.0, "cpu_us": MICROS, **more}


def test_threads_are_told_apart_by_their_names() -> None:
    """Names are those that the system shows, of at most 15 bytes."""
    assert [kind_of(name) for name in ("io-3", "journal-0", "journal-prepare", "flush", "flush-1", "read-7")] == [
        "io", "journal", "journal", "flush", "flush", "read"]  # fmt: skip
    assert kind_of("bookie-server") == kind_of("garbage") == "other"


def test_the_newest_row_of_a_shape_counts() -> None:
    """Rows are in the order of the shapes; shapes that are not measured any more are left out."""
    lines = [json.dumps(one) for one in (row("batches"), row(p99_us=1.0), row(), row(loops=77))]
    assert newest(lines) == [row(), row("batches")]


def test_the_first_resource_to_end() -> None:
    """Each ceiling is what the resource has, divided by what an entry takes of it."""
    found = ceilings(row(), LARGE)
    assert [most for _, most in found] == sorted(most for _, most in found)
    assert found[0][0] == "disks of 2 journals"
    assert dict(found)["all cores"] == 64e6
    assert dict(found)["16 I/O loops, a core each"] == 32e6
    assert dict(found)["10 flushers, a core each"] == 40e6


def own(journals: int, directories: int, entries_s: int, date: str = "b") -> dict[str, Any]:
    """A row of disks of their own, of which the journals' are three quarters busy and the directories' one half."""
    written = {"journals_mb_s": 37.5 * journals, "directories_mb_s": 25 * directories}
    disks: dict[str, Any] = {"latency_ms": 5.0, "disk_mb_s": 50, **written}
    return row(journals=journals, directories=directories, entries_s=entries_s, **disks, card={"date": date})


def test_own_disks_are_a_table_of_medians() -> None:
    """Of the newest run only; such rows do not take the place of those on one disk."""
    shapes = [(shape.journals, shape.directories) for shape in ON_OWN_DISKS]
    rows = [own(1, 1, 7, date="a"), *(own(*shape, 1000 * shape[0] + more) for more in (0, 5, 900) for shape in shapes)]
    lines = [json.dumps(one) for one in [row(), *rows]]
    assert newest(lines) == [row()]
    found = of_own_disks(newest_on_own_disks(lines))
    assert found[2] == "| 1 | 1 | 1,005 | 1.0 | 75 % | 50 % |"
    assert found[4] == "| 4 | 4 | 4,005 | 4.0 | 75 % | 50 % |"


def test_latency_alone_has_a_table_of_its_own() -> None:
    """Each number of outstanding adds is compared with one journal and directory; such rows are in no other table."""
    shapes = [shape for shape, _ in plan(Disks(latency_ms=5, mb_s=0), runs=1)]
    assert len(shapes) == 2 * len(OF_LATENCY)
    rows = [
        {**own(one.journals, one.directories, rate * one.journals), "disk_mb_s": 0, "outstanding": many}
        for one in OF_LATENCY
        for many, rate in ((20_000, 1000), (80_000, 3000))
    ]
    lines = [json.dumps(one) for one in [row(), own(1, 1, 7), *rows]]
    assert newest(lines) == [row()]
    assert newest_on_own_disks(lines) == [own(1, 1, 7)]
    found = of_latency(newest_of_latency(lines))
    assert found[2:5] == [
        "| 1 | 1 | 20,000 | 1,000 | 1.0 |",
        "| 2 | 2 | 20,000 | 2,000 | 2.0 |",
        "| 4 | 4 | 20,000 | 4,000 | 4.0 |",
    ]
    assert found[6] == "| 2 | 2 | 80,000 | 6,000 | 2.0 |"


def test_a_bookie_on_slow_disks(tmp_path: Path) -> None:
    """It serves from them, and what it writes is counted for the disk of each journal."""
    pytest.importorskip("bookie._fast.testing.slow", reason="build with BOOKIE_FAULTS=1")
    disks = Disks(latency_ms=0.1, mb_s=0)
    server = OurBookie(tmp_path)
    keys = settings(tmp_path, ON_OWN_DISKS[1])
    disks.attach(server, keys)
    try:
        server.start(keys)
        bkload("fill", port=server.port, size=1000, outstanding=4, connections=2, ledgers=2, entries=20)
        written = disks.written(server)
        assert len(written) == ON_OWN_DISKS[1].journals + ON_OWN_DISKS[1].directories
        assert min(written[: ON_OWN_DISKS[1].journals]) >= 20_000
    finally:
        server.stop()


def test_the_page_has_these_tables() -> None:
    """docs/scale.md shows what the results say."""
    lines = ROWS.read_text().splitlines()
    page = (ROOT / "docs/scale.md").read_text()
    rows = newest(lines)
    assert len(rows) == len(SHAPES)
    assert "\n".join(tables(rows)) in page
    assert "\n".join(of_own_disks(newest_on_own_disks(lines))) in page
    assert "\n".join(of_latency(newest_of_latency(lines))) in page
