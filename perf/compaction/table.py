"""`python -m perf.compaction.table`: the table of perf/README.md, medians of the newest row for each size and rate."""

import json
import statistics
from collections.abc import Iterable, Mapping
from typing import Any

from perf.markdown import head, line
from perf.side_by_side.card import ROOT

__all__ = ["RESULTS", "table"]

RESULTS = ROOT / "perf/results/compaction.jsonl"
MIB = 1 << 20
SIZE = ("directories", "mib", "log_mib", "entry", "ledgers", "dead", "rate")
COLUMNS = ("directories", "logs", "MiB of logs", "rate MiB/s of each", "in turn s", "at once s", "times as fast")


def table(lines: Iterable[str]) -> list[str]:
    """Return a line for each size and rate, in the order in which they were measured last."""
    rows: dict[tuple[int, ...], Mapping[str, Any]] = {}
    for row in map(json.loads, lines):
        key = tuple(row[name] for name in SIZE)
        rows.pop(key, None)
        rows[key] = row
    return [*head(COLUMNS), *map(_line, rows.values())]


def _line(row: Mapping[str, Any]) -> str:
    in_turn, at_once = (statistics.median(row[name]) for name in ("in_turn_s", "at_once_s"))
    rate = f"{row['rate'] / MIB:.0f}" if row["rate"] else "no limit"
    sizes = [str(row["directories"]), str(row["logs"]), str(row["mib"]), rate]
    return line([*sizes, f"{in_turn:.2f}", f"{at_once:.2f}", f"{in_turn / at_once:.1f}"])


if __name__ == "__main__":
    print("\n".join(table(RESULTS.read_text().splitlines())))
