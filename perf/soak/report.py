"""The figures, the plot and the verdict of a soak. Pure functions: samples in, text out."""

import statistics
from collections.abc import Sequence
from typing import Any

import numpy as np

from bookie.spark.plots import line_plot

__all__ = ["figures", "plot"]

Row = dict[str, Any]
HOUR_S = 3600.0
SLOPE_MB_HOUR_MAX = 1.0
P99_TIMES_MAX = 3.0


def figures(samples: Sequence[Row], minutes: Sequence[Row]) -> Row:
    """Return what a soak comes to.

    Args:
        samples: What each bookie took, every few seconds: `at` in seconds since the start, `bookie`, `rss_mb`,
            `anonymous_mb`, `descriptors`, `threads`, `disk_mb`.
        minutes: What clients measured in each minute: `role`, `at`, `entries_s`, `mb_s`, `p50_ms`, `p99_ms`.
    """
    lasted = max(one["at"] for one in samples)
    later = [one for one in samples if one["at"] >= min(HOUR_S, lasted / 2)]
    bookies = sorted({one["bookie"] for one in samples})
    slopes = {name: _slope([one for one in later if one["bookie"] == name]) for name in bookies}
    found: Row = {"hours": round(lasted / HOUR_S, 2), "rss_slope_mb_hour": slopes}
    for name in ("rss_mb", "anonymous_mb", "descriptors", "threads", "disk_mb"):
        found[name] = [min(one[name] for one in later), max(one[name] for one in later)]
    for role in sorted({one["role"] for one in minutes}):
        mine = [one for one in minutes if one["role"] == role]
        p99 = statistics.median(one["p99_ms"] for one in mine)
        found[role] = {
            "minutes": len(mine),
            "entries_s": round(statistics.median(one["entries_s"] for one in mine)),
            "p99_ms": round(p99, 2),
            "worst_p99_ms": round(max(one["p99_ms"] for one in mine), 2),
            "minutes_above": sum(one["p99_ms"] > P99_TIMES_MAX * p99 for one in mine),
        }
    found["steady"] = all(slope <= SLOPE_MB_HOUR_MAX for slope in slopes.values()) and not any(
        found[role]["minutes_above"] for role in ("writer", "tail") if role in found
    )
    return found


def plot(samples: Sequence[Row], minutes: Sequence[Row], what: str) -> str:
    """Return a plot over the hours: of a column of samples by bookie, or of the p99 by role if `what` is p99_ms."""
    rows, by = (minutes, "role") if what == "p99_ms" else (samples, "bookie")
    curves = {name: [(one["at"] / HOUR_S, one[what]) for one in rows if one[by] == name] for name in _names(rows, by)}
    return line_plot(curves, "hours", what)


def _names(rows: Sequence[Row], by: str) -> list[str]:
    return sorted({one[by] for one in rows})


def _slope(samples: Sequence[Row]) -> float:
    """Return the rise of the memory in MB an hour, by least squares."""
    if len(samples) < 2:
        return 0.0
    hours = np.array([one["at"] for one in samples]) / HOUR_S
    return round(float(np.polyfit(hours, np.array([one["rss_mb"] for one in samples]), 1)[0]), 3)
