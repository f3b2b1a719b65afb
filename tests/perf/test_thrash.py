"""The thrash curve as a table and as a plot."""

import re

from perf.thrash_plot import plot, table

ROWS = [
    {"subject": "ours", "cache_mb": 64, "reads_per_entry": 1.2},
    {"subject": "ours", "cache_mb": 8, "reads_per_entry": 40.0},
    {"subject": "java", "cache_mb": 16, "reads_per_entry": 12.34},
    {"subject": "ours", "cache_mb": 8, "reads_per_entry": 41.0},
]


def test_the_table() -> None:
    """One line per size, ascending; the last row of a size counts; what was not measured stays empty."""
    assert table(ROWS).splitlines() == [
        "| read cache, MiB | Apache BookKeeper | bookie |",
        "|---|---|---|",
        "| 8 |  | 41.00 |",
        "| 16 | 12.34 |  |",
        "| 64 |  | 1.20 |",
    ]


def test_the_plot() -> None:
    """XML with a curve per subject and a point per size, all inside its frame."""
    drawn = plot(ROWS)
    assert drawn.startswith("<svg ")
    assert drawn.count("<polyline ") == 2
    points = [(float(x), float(y)) for x, y in re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)"', drawn)]
    assert len(points) == 3
    assert all(0 < x < 720 and 0 < y < 420 for x, y in points)
