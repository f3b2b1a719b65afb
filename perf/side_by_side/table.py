"""`python -m perf.side_by_side.table`: the table of README.md, of the newest results of each row."""

import json
from collections.abc import Iterable

from perf.markdown import head, line
from perf.side_by_side.drive import Result
from perf.side_by_side.report import Samples, shown
from perf.side_by_side.rows import CPU, P99, RATE, ROWS, Row, Subject, Target
from perf.side_by_side.run import RESULTS

__all__ = ["newest", "table"]

HEAD = ("work", "this bookie", "Java bookie", "ratio", "of the bound", "p99, ms", "Java's", "CPU s a million", "Java's")
PROCESS = {"seconds": " s", "rss_mb": " MB", "bytes_per_entry": " bytes an entry"}
"""Figures of rows that measure no rate, and their units."""
SUBJECTS: tuple[Subject, ...] = ("ours", "java")


def needed(row: Row) -> set[str]:
    """Return the subjects without which a row's results are not shown."""
    return {"ours", *(["java"] if row.java else []), *(["bound"] if row.bound else [])}


def newest(lines: Iterable[str]) -> list[Samples]:
    """Return the last complete results of each row, in the order of the rows."""
    rows = {row.name: row for row in ROWS}
    found: dict[str, dict[Subject, list[Result]]] = {}
    for kept in map(json.loads, lines):
        if kept["row"] in rows and kept["results"].keys() >= needed(rows[kept["row"]]):
            found[kept["row"]] = kept["results"]
    return [Samples(row, found[row.name]) for row in ROWS if row.name in found]


def cell(value: float | None, unit: str = "") -> str:
    """Format a figure; an empty cell if it was not measured."""
    return "" if value is None else shown(value) + unit


def ratio(samples: Samples, figure: str, against: Subject) -> str:
    """Return the median of the pairs' ratios to another subject."""
    value = samples.value(Target(figure=figure, against=against, at_least=0))
    return "" if value is None else f"{value:.2g}"


def milliseconds(samples: Samples, subject: Subject) -> str:
    """Return the 99th percentile of a row's latencies."""
    value = samples.median(subject, P99)
    return "" if value is None else shown(value / 1000)


def process(samples: Samples, row: Row) -> list[str]:
    """Return the cells of a row without a rate."""
    figure = row.targets[0].figure
    both = [cell(samples.median(subject, figure), PROCESS[figure]) for subject in SUBJECTS]
    return [row.name, *both, ratio(samples, figure, "java"), "", "", "", "", ""]


def rate(samples: Samples, row: Row) -> list[str]:
    """Return the cells of a row with a rate in entries per second."""
    both = [cell(samples.median(subject, RATE), "/s") for subject in SUBJECTS]
    p99 = [milliseconds(samples, subject) for subject in SUBJECTS]
    cpu = [cell(samples.median(subject, CPU)) for subject in SUBJECTS]
    return [row.name, *both, ratio(samples, RATE, "java"), ratio(samples, RATE, "bound"), *p99, *cpu]


def table(lines: Iterable[str]) -> list[str]:
    """Return the lines of the table."""
    rows = (process(one, one.row) if one.row.kind == "process" else rate(one, one.row) for one in newest(lines))
    return [*head(HEAD), *map(line, rows)]


if __name__ == "__main__":
    print("\n".join(table(RESULTS.read_text().splitlines())))
