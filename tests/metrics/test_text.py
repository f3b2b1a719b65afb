"""Tests of the families' text: both formats, escapes, special values, and which format a request asks for."""

import math

import pytest

from bookie.metrics.family import Family, Kind, Sample, counter, gauge, histogram, merged
from bookie.metrics.text import wants_openmetrics, write


def test_plain_text() -> None:
    """Each family has a help line and a type line, and each sample has a line."""
    families = [
        counter("bookie_WRITE_BYTES", "Bytes.", 7),
        Family("op", Kind.SUMMARY, "Time.", (
            Sample(math.nan, (("success", "true"), ("quantile", "0.5"))),
            Sample(3, (("success", "true"),), "_count"),
            Sample(1.5, (("success", "true"),), "_sum"),
        )),
    ]  # fmt: skip
    assert write(families).decode().splitlines() == [
        "# HELP bookie_WRITE_BYTES Bytes.",
        "# TYPE bookie_WRITE_BYTES counter",
        "bookie_WRITE_BYTES 7",
        "# HELP op Time.",
        "# TYPE op summary",
        'op{success="true",quantile="0.5"} NaN',
        'op_count{success="true"} 3',
        'op_sum{success="true"} 1.5',
    ]
    assert write(families).endswith(b"\n")
    assert write([]) == b""


def test_openmetrics_keeps_the_names() -> None:
    """A counter that does not end in `_total` has the type `unknown` there, so that queries find the same series."""
    page = write([counter("bookie_WRITE_BYTES", "B.", 7), counter("x_total", "X.", 8)], openmetrics=True).decode()
    assert page.splitlines() == [
        "# HELP bookie_WRITE_BYTES B.",
        "# TYPE bookie_WRITE_BYTES unknown",
        "bookie_WRITE_BYTES 7",
        "# HELP x X.",
        "# TYPE x counter",
        "x_total 8",
        "# EOF",
    ]


def test_what_needs_escaping() -> None:
    """Label values and help texts may hold any character, and numbers may be infinite or NaN."""
    text = write([gauge("g", 'a\\b\n"c"', -math.inf, (("dir", 'q"\\\n'),))]).decode()
    assert text == '# HELP g a\\\\b\\n"c"\n# TYPE g gauge\ng{dir="q\\"\\\\\\n"} -Inf\n'


def test_histograms_are_cumulative() -> None:
    """Each bucket includes those below it, and the last one equals the count."""
    found = histogram("h", "H.", {5: 1, 10: 0, math.inf: 2}, 40.5)
    assert [(one.suffix, one.value, dict(one.labels).get("le")) for one in found.samples] == [
        ("_bucket", 1, "5.0"), ("_bucket", 1, "10.0"), ("_bucket", 3, "+Inf"),
        ("_sum", 40.5, None), ("_count", 3, None),
    ]  # fmt: skip


def test_parts_of_a_family_come_together() -> None:
    """A name is announced once, even if several sources give samples of it."""
    parts = [gauge("a", "A.", 1, (("n", "1"),)), gauge("b", "B.", 2), gauge("a", "A.", 3, (("n", "2"),))]
    found = list(merged(parts))
    assert [(one.name, [sample.value for sample in one.samples]) for one in found] == [("a", [1, 3]), ("b", [2])]


@pytest.mark.parametrize(
    ("accept", "openmetrics"),
    [
        ("", False),
        ("*/*", False),
        ("text/plain", False),
        ("application/openmetrics-text", True),
        ("application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1", True),
        ("application/openmetrics-text;q=0.4,text/plain;q=0.5", False),
        ("application/openmetrics-text;q=0", False),
        ("application/openmetrics-text;q=soon", False),
    ],
)
def test_which_format_is_wanted(accept: str, openmetrics: bool) -> None:
    """OpenMetrics is chosen as Prometheus asks for it, and a request that does not name it gets plain text."""
    assert wants_openmetrics(accept) is openmetrics
