"""The thrash curve as a table and as a plot."""

from xml.etree import ElementTree

from perf.thrash_plot import plot, table

ROWS = [
    {"subject": "ours", "cache_mb": 64, "reads_per_entry": 1.2},
    {"subject": "ours", "cache_mb": 8, "reads_per_entry": 40.0},
    {"subject": "java", "cache_mb": 16, "reads_per_entry": 12.34},
    {"subject": "ours", "cache_mb": 8, "reads_per_entry": 41.0},
]


def test_the_table() -> None:
    """A line a size, ascending; the last row of a size counts; what was not measured stays empty."""
    assert table(ROWS).splitlines() == [
        "| read cache, MiB | Apache BookKeeper | bookie |",
        "|---|---|---|",
        "| 8 |  | 41.00 |",
        "| 16 | 12.34 |  |",
        "| 64 |  | 1.20 |",
    ]


def test_the_plot() -> None:
    """XML with a curve a subject and a point a size, all inside its frame."""
    root = ElementTree.fromstring(plot(ROWS))
    space = "{http://www.w3.org/2000/svg}"
    assert len(root.findall(f"{space}polyline")) == 2
    points = [(float(at.attrib["cx"]), float(at.attrib["cy"])) for at in root.findall(f"{space}circle")]
    assert len(points) == 3
    assert all(0 < x < 720 and 0 < y < 420 for x, y in points)
