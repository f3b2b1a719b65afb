"""`python -m perf.pulsar.table`: the tables of perf/README.md, medians of the newest run."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from perf.markdown import head, line
from perf.side_by_side.card import ROOT, newest_run
from perf.three_bookies import KINDS

__all__ = ["RESULTS", "table"]

RESULTS = ROOT / "perf/results/pulsar.jsonl"
Row = Mapping[str, Any]
FULL = (
    "topics",
    "bookies",
    "produced /s",
    "CPU s a million: bookies",
    "broker",
    "read again /s",
    "CPU s: bookies",
    "broker",
)
STEADY = ("topics", "bookies", "p99 of producers ms", "of readers at the tail ms", "CPU s a million: bookies", "broker")


def table(rows: Sequence[Row]) -> list[str]:
    """Return two tables in Markdown: as many messages as go in, and a steady rate."""
    full, steady = head(FULL), head(STEADY)
    for topics in sorted({row["topics"] for row in rows}):
        for kind in KINDS:
            of = [row for row in rows if (row["topics"], row["bookies"]) == (topics, kind)]
            filled = [row for row in of if row["load"] == "unthrottled"]
            calm = [row for row in of if row["load"] == "steady"]
            where = [str(topics), "ours" if kind == "ours" else "Java"]
            full.append(line([
                *where, _whole(filled, "produced_s"), *_cpu(filled, "produce_cpu"),
                _whole(filled, "consumed_s"), *_cpu(filled, "consume_cpu"),
            ]))  # fmt: skip
            steady.append(
                line([*where, _whole(calm, "produce_p99_ms"), _whole(calm, "tail_p99_ms"), *_cpu(calm, "cpu")])
            )
    return [*full, "", *steady]


def _whole(rows: Sequence[Row], name: str) -> str:
    return f"{statistics.median(row[name] for row in rows):,.0f}"


def _cpu(rows: Sequence[Row], name: str) -> list[str]:
    return [f"{statistics.median(row[name][part] for row in rows):.1f}" for part in ("bookies", "broker")]


if __name__ == "__main__":
    print("\n".join(table(newest_run(RESULTS.read_text().splitlines()))))
