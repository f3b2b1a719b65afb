"""Medians of paired runs, their ratios and the verdict: one JSON line per row, and a table."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console
from rich.table import Table

from perf.side_by_side.drive import Result
from perf.side_by_side.rows import Row, Subject, Target

UNITS = {"entries_s": "/s", "latency_us.p99": "us p99", "server.cpu_s_per_million": "CPU-s/M", "seconds": "s",
         "rss_mb": "MB", "bytes_per_entry": "B/entry"}  # fmt: skip


def figure(result: Result, path: str) -> float | None:
    """Return the number at a dotted path of a result."""
    value: Any = result
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return float(value) if value is not None else None


@dataclass(slots=True)
class Samples:
    """The results of one row: for each subject one per pair, in order."""

    row: Row
    results: dict[Subject, list[Result]] = field(default_factory=dict)
    others: Mapping[str, "Samples"] = field(default_factory=dict, repr=False)
    """All rows of the run by name, for targets that compare with another row."""

    def median(self, subject: Subject, path: str) -> float | None:
        """Return the median over the pairs; None if it was not measured."""
        values = [value for result in self.results.get(subject, []) if (value := figure(result, path)) is not None]
        return statistics.median(values) if values else None

    def compared(self, target: Target) -> "Samples":
        """Return the row with whose results the target compares: this one, or the one that it names.

        Raises:
            KeyError: that row was not measured.
        """
        return self.others[target.row] if target.row else self

    def value(self, target: Target) -> float | None:
        """Return what the target limits: the median of the pairs' ratios, or of the figure itself."""
        if target.against is None:
            return self.median(target.subject, target.figure)
        pairs = zip(
            self.results.get(target.subject, []), self.compared(target).results.get(target.against, []), strict=False
        )
        ratios = []
        for one, other in pairs:
            above, below = figure(one, target.figure), figure(other, target.figure)
            if above is not None and below:
                ratios.append(above / below)
        return statistics.median(ratios) if ratios else None

    def line(self, card: dict[str, str | int], plan: dict[str, float]) -> dict[str, Any]:
        """Return the row as it is stored."""
        verdicts = []
        for target in self.row.targets:
            value = self.value(target)
            verdicts.append({
                "figure": target.figure, "subject": target.subject, "against": target.against,
                **({"against_row": target.row} if target.row else {}),
                "value": value and round(value, 4), "target": target.text(),
                "met": target.met(value) if value is not None else None,
            })  # fmt: skip
        return {"row": self.row.name, "card": card, "plan": plan, "verdicts": verdicts, "results": self.results}


def shown(value: float | None) -> str:
    """Format a number with three significant digits."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def print_table(samples: Sequence[Samples], console: Console) -> None:
    """Return a line for each target: the medians compared, the ratio, the limit and the verdict."""
    table = Table("work", "figure", "compared", "of", "with", "ratio", "target", "verdict")
    for sample in samples:
        if not sample.results:
            continue
        for target in sample.row.targets:
            value = sample.value(target)
            verdict = "not measured" if value is None else "reached" if target.met(value) else "MISSED"
            style = {"reached": "green", "MISSED": "red"}.get(verdict, "dim")
            table.add_row(
                sample.row.name,
                UNITS.get(target.figure, target.figure),
                f"{target.subject}/{target.against}{' V2' if target.row else ''}" if target.against else target.subject,
                shown(sample.median(target.subject, target.figure)),
                shown(sample.compared(target).median(target.against, target.figure)) if target.against else "-",
                shown(value),
                target.text(),
                f"[{style}]{verdict}[/]",
            )
    console.print(table)
