"""`python -m perf.ledgers_for_a_minute.table`: the table of perf/README.md, of the newest results."""

import json
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from perf.markdown import head, line
from perf.side_by_side.card import ROOT

__all__ = ["RESULTS", "table"]

RESULTS = ROOT / "perf/results/ledgers_for_a_minute.jsonl"
BOOKIES = {"ours": "this bookie", "java": "Java bookie"}
Row = Mapping[str, Any]


def table(lines: Iterable[str]) -> list[str]:
    """Return a line for each number of ledgers and each bookie, with the medians of the newest run that has it.

    Raises:
        ValueError: the newest runs do not have the same parts, so they have no columns in common.
    """
    runs: dict[tuple[int, str], list[Row]] = {}
    for row in map(json.loads, lines):
        rows = runs.setdefault((row["ledgers"], row["bookie"]), [])
        if rows and rows[-1]["card"]["date"] != row["card"]["date"]:
            rows.clear()
        rows.append(row)
    kinds = {(len(row["parts"]), row["seconds"]) for rows in runs.values() for row in rows}
    if len(kinds) != 1:
        raise ValueError(f"parts and their seconds differ between the newest runs: {sorted(kinds)}; measure them again")
    [(parts, seconds)] = kinds
    spans = [f"{seconds * part:g} to {seconds * (part + 1):g} s" for part in range(parts)]
    found = head(["ledgers", "adds/s of", *spans, "CPU s a million", "bytes written an add"])
    for ledgers, bookie in sorted(runs, key=lambda key: (key[0], list(BOOKIES).index(key[1]))):
        found.append(line([f"{ledgers:,}", BOOKIES[bookie], *_figures(runs[ledgers, bookie])]))
    return found


def _figures(rows: Sequence[Row]) -> list[str]:
    """Return the cells of a bookie: the rate of each part, and what an add took over the whole time."""
    together = zip(*(row["parts"] for row in rows), strict=True)
    rates = [statistics.median(part["adds_s"] for part in same) for same in together]
    cpu, written = [], []
    for row in rows:
        adds = sum(part["adds_s"] * row["seconds"] for part in row["parts"])
        spent = sum(part["cpu_s_per_million"] * part["adds_s"] * row["seconds"] for part in row["parts"])
        cpu.append(spent / adds)
        written.append(1e6 * sum(part["written_mb"] for part in row["parts"]) / adds)
    figures = [f"{statistics.median(cpu):.1f}", f"{statistics.median(written):,.0f}"]
    return [*(f"{rate:,.0f}" for rate in rates), *figures]


if __name__ == "__main__":
    print("\n".join(table(RESULTS.read_text().splitlines())))
