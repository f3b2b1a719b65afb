"""`perf.compaction` in several directories at once, and its table."""

import json
from pathlib import Path

from perf.compaction.at_once import at_once, spread
from perf.compaction.table import RESULTS, table

ROOT = Path(__file__).resolve().parents[2]
SIZE = {"directories": 2, "mib": 16, "log_mib": 4, "entry": 1024, "ledgers": 32}


def row(**more: object) -> str:
    seconds = {"in_turn_s": [9.0, 8.0, 1.0], "at_once_s": [2.0, 9.0, 2.0]}
    return json.dumps({**SIZE, "dead": 0.5, "rate": 0, "logs": 5, **seconds, **more})


def test_dead_ledgers_are_spread_over_each_directory() -> None:
    """Every second ledger of a directory, where half of them are dead: none of the other directory's."""
    assert spread(SIZE, 0.5) == [list(range(2, 32, 4)), list(range(3, 32, 4))]
    assert spread(SIZE, 0.0) == [[], []]


def test_both_ways_compact_all_logs(tmp_path: Path) -> None:
    """A row has the seconds of each measurement; logs that stay would have raised an error."""
    found = at_once(tmp_path / "root", SIZE, 0.5, 0, pairs=2)
    assert found["logs"] >= SIZE["directories"]
    assert [len(found[name]) for name in ("in_turn_s", "at_once_s")] == [2, 2]
    assert not (tmp_path / "root").exists()


def test_the_newest_row_of_a_size_counts_with_its_medians() -> None:
    """A size and rate has one line."""
    assert table([row(in_turn_s=[1.0]), row(rate=32 << 20), row()])[2:] == [
        "| 2 | 5 | 16 | 32 | 8.00 | 2.00 | 4.0 |",
        "| 2 | 5 | 16 | no limit | 8.00 | 2.00 | 4.0 |",
    ]


def test_the_readme_has_this_table() -> None:
    """perf/README.md shows what the results say."""
    assert "\n".join(table(RESULTS.read_text().splitlines())) in (ROOT / "perf/README.md").read_text()
