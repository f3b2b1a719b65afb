"""The tables and the model of `perf.scale`."""

import json
from pathlib import Path
from typing import Any

from perf.scale.__main__ import ROWS
from perf.scale.shapes import SHAPES, kind_of
from perf.scale.table import LARGE, ceilings, newest, tables

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


def test_the_page_has_these_tables() -> None:
    """docs/scale.md shows what the results say."""
    rows = newest(ROWS.read_text().splitlines())
    assert len(rows) == len(SHAPES)
    assert "\n".join(tables(rows)) in (ROOT / "docs/scale.md").read_text()
