"""`perf.ledgers_for_a_minute`: what it records, and its table."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from perf.ledgers_for_a_minute.__main__ import measure
from perf.ledgers_for_a_minute.table import RESULTS, table
from perf.side_by_side.card import append
from perf.side_by_side.servers import OurBookie
from perf.side_by_side.sessions import io_bytes

ROOT = Path(__file__).resolve().parents[2]


def minute(bookie: str, *rates: int, ledgers: int = 10, date: str = "b", written_mb: float = 21.0) -> dict[str, Any]:
    part = {"p99_us": 1.0, "cpu_s_per_million": 1.5, "rss_mb": 9.0, "written_mb": written_mb}
    parts = [{"adds_s": rate, **part} for rate in rates]
    return {"ledgers": ledgers, "bookie": bookie, "pair": 0, "seconds": 5.0, "parts": parts, "card": {"date": date}}


def test_a_bookie_has_a_line_for_each_number_of_ledgers() -> None:
    """Our bookie comes first. Medians of the newest run that measured it; of an older one, if the newest did not."""
    rows = [
        minute("java", 500, 900, ledgers=10_000),
        minute("ours", 7, 7, date="a"), minute("java", 1000, 2000, date="a"),
        minute("ours", 1000, 2000), minute("ours", 5000, 2500, written_mb=75.0), minute("ours", 1000, 3000),
    ]  # fmt: skip
    assert table(map(json.dumps, rows)) == [
        "| ledgers | adds/s of | 0 to 5 s | 5 to 10 s | CPU s a million | bytes written an add |",
        "|---|---|---|---|---|---|",
        "| 10 | this bookie | 1,000 | 2,500 | 1.5 | 2,800 |",
        "| 10 | Java bookie | 1,000 | 2,000 | 1.5 | 2,800 |",
        "| 10,000 | Java bookie | 500 | 900 | 1.5 | 6,000 |",
    ]


def test_runs_of_other_lengths_have_no_table_in_common() -> None:
    """So the program says what to do, rather than put rates of different times into one column."""
    with pytest.raises(ValueError, match="measure them again"):
        table(map(json.dumps, [minute("ours", 1), minute("java", 1, 2)]))


def test_what_a_minute_records(tmp_path: Path) -> None:
    """Each part has a rate, and what the bookie has written to disk meanwhile, or a part before it."""
    server = OurBookie(tmp_path)
    try:
        parts = measure(server, ledgers=10, parts=2, seconds=0.2)
    finally:
        server.stop()
    assert len(parts) == 2
    assert all(part["adds_s"] > 0 and part["cpu_s_per_million"] > 0 for part in parts)
    assert all(part["written_mb"] > 0 for part in parts)


def test_written_bytes_are_those_that_go_to_a_disk(tmp_path: Path) -> None:
    """A write to a file is counted for the process that did it."""
    before = io_bytes(os.getpid(), "write_bytes")
    (tmp_path / "file").write_bytes(bytes(1 << 20))
    assert io_bytes(os.getpid(), "write_bytes") - before >= 1 << 20


def test_results_are_appended(tmp_path: Path) -> None:
    """What is there stays; directories are made."""
    results = tmp_path / "new" / "results.jsonl"
    append(results, {"one": 1})
    append(results, {"two": [2]})
    assert [json.loads(line) for line in results.read_text().splitlines()] == [{"one": 1}, {"two": [2]}]


def test_the_readme_has_this_table() -> None:
    """perf/README.md shows what the results say."""
    assert "\n".join(table(RESULTS.read_text().splitlines())) in (ROOT / "perf/README.md").read_text()
