"""The results of perf.thrash as a table in Markdown and a plot in SVG. Pure functions: rows in, text out."""

from collections.abc import Sequence
from typing import Any

from bookie.spark.plots import line_plot

__all__ = ["plot", "Row", "table"]

Row = dict[str, Any]
SUBJECTS = {"java": ("Apache BookKeeper", "#b3541e"), "ours": ("bookie", "#1e5fb3"),
            "adaptive": ("bookie, adaptive readahead", "#2a8f4f")}  # fmt: skip


def curves(rows: Sequence[Row]) -> dict[str, dict[int, float]]:
    """Return reads per entry by cache size for each subject; the last row of a size counts."""
    found: dict[str, dict[int, float]] = {name: {} for name in SUBJECTS}
    for row in rows:
        found[row["subject"]][row["cache_mb"]] = row["reads_per_entry"]
    return {name: dict(sorted(curve.items())) for name, curve in found.items() if curve}


def table(rows: Sequence[Row]) -> str:
    """Return the table, with a row per cache size and a column per subject."""
    found = curves(rows)
    lines = [
        f"| read cache, MiB | {' | '.join(SUBJECTS[name][0] for name in found)} |",
        "|---" * (len(found) + 1) + "|",
    ]
    for size in sorted({size for curve in found.values() for size in curve}):
        cells = (f"{curve[size]:.2f}" if size in curve else "" for curve in found.values())
        lines.append(f"| {size} | {' | '.join(cells)} |")
    return "\n".join(lines)


def plot(rows: Sequence[Row]) -> str:
    """Return the plot of reads per entry over the cache size, both on logarithmic scales."""
    found = curves(rows)
    lines = {SUBJECTS[name][0]: list(curve.items()) for name, curve in found.items()}
    return line_plot(
        lines, "read cache, MiB", "times an entry is read from disk",
        colours=dict(SUBJECTS.values()), by_doublings=(True, True), dots=True,
    )  # fmt: skip
