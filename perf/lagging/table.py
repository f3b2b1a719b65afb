"""`python -m perf.lagging.table`: the table of perf/README.md, medians of the newest run."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from perf.markdown import head, line
from perf.side_by_side.card import ROOT, newest_run

__all__ = ["RESULTS", "Row", "table"]

RESULTS = ROOT / "perf/results/lagging.jsonl"
Row = Mapping[str, Any]


def table(rows: Sequence[Row]) -> list[str]:
    """Return the medians in Markdown, a line for each lag and kind of read."""
    lines = head([
        "memory", "lag, write caches", "read", "ours /s", "Java /s", "ours by Java's", "CPU s a million: ours", "Java",
    ])  # fmt: skip
    for memory, lag, kind in dict.fromkeys((row["memory"], row["lag"], row["kind"]) for row in rows):
        found = [row for row in rows if (row["memory"], row["lag"], row["kind"]) == (memory, lag, kind)]
        ours, java = (_median(found, subject, "entries_s") for subject in ("ours", "java"))
        cpu = (f"{_median(found, subject, 'cpu'):.1f}" for subject in ("ours", "java"))
        lines.append(line([memory, f"{lag:g}", kind, f"{ours:,.0f}", f"{java:,.0f}", f"{ours / java:.1f}", *cpu]))
    return lines


def _median(rows: Sequence[Row], subject: str, name: str) -> float:
    return float(statistics.median(row[name] for row in rows if row["subject"] == subject))


if __name__ == "__main__":
    print("\n".join(table(newest_run(RESULTS.read_text().splitlines()))))
