"""The comparison itself: verdicts from medians of pairs, and a complete run on our bookie with little data."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from perf.side_by_side.report import Samples, figure
from perf.side_by_side.rows import ROWS, Row, Target
from perf.side_by_side.run import RESULTS, main, rows_of
from perf.side_by_side.table import table

FASTER = Target(figure="entries_s", at_least=4)
CALMER = Target(figure="latency_us.p99", at_most=1 / 8)
SMALL = Target(figure="bytes_per_entry", against=None, at_most=8)


def result(rate: float, p99: float = 1.0) -> dict[str, Any]:
    """Return a result as bkload prints it, reduced to what the targets use."""
    return {"entries_s": rate, "latency_us": {"p99": p99}}


def test_a_verdict_is_the_median_of_the_pairs_ratios() -> None:
    """The ratio is taken within each pair, because a machine that is slow during a pair slows both sides."""
    row = Row(name="row", kind="add", targets=(FASTER, CALMER))
    ours = [result(400, 10), result(50, 30), result(900, 10)]
    java = [result(100, 90), result(10, 200), result(300, 100)]
    line = Samples(row, {"ours": ours, "java": java}).line({}, {})
    assert [(verdict["value"], verdict["met"]) for verdict in line["verdicts"]] == [(4.0, True), (0.1111, True)]


def test_what_was_not_measured_has_no_verdict() -> None:
    """Without a figure, or without one to compare with, a target is neither met nor missed."""
    samples = Samples(Row(name="row", kind="add", targets=(FASTER, CALMER)), {"ours": [result(400)]})
    assert [verdict["met"] for verdict in samples.line({}, {})["verdicts"]] == [None, None]
    assert figure({"latency_us": {}}, "latency_us.p99") is None


def test_a_target_without_a_rival_limits_the_figure_itself() -> None:
    """Bytes per entry are compared with a number."""
    samples = Samples(Row(name="row", kind="process"), {"ours": [{"bytes_per_entry": size} for size in (7, 9, 8.5)]})
    assert samples.value(SMALL) == 8.5
    assert not SMALL.met(8.5)
    assert SMALL.met(8)


def test_a_row_may_be_compared_with_another() -> None:
    """V3 is compared with our own V2, pair by pair; a run of V3 rows measures the V2 rows too."""
    target = Target(figure="entries_s", against="ours", row="slow", at_least=0.9)
    rows: dict[str, Samples] = {}
    rows["slow"] = Samples(Row(name="slow", kind="add"), {"ours": [result(100), result(200)]}, rows)
    rows["fast"] = Samples(Row(name="fast", kind="add", targets=(target,)), {"ours": [result(90), result(190)]}, rows)
    (verdict,) = rows["fast"].line({}, {})["verdicts"]
    assert (verdict["value"], verdict["against_row"]) == (0.925, "slow")
    assert len(rows_of(", V3$")) == 2 * len([row for row in ROWS if row.name.endswith(", V3")])


def test_rows_are_distinct_and_have_targets() -> None:
    """Results are stored by name."""
    assert len({row.name for row in ROWS}) == len(ROWS)
    assert all(row.targets for row in ROWS)
    assert all((target.at_least is None) != (target.at_most is None) for row in ROWS for target in row.targets)


@pytest.mark.slow
def test_a_run_on_our_bookie(tmp_path: Path) -> None:
    """Fill, stop, start, read from cache and from disk, and the bounds: each row is stored with its verdicts."""
    results = tmp_path / "results.jsonl"
    words = ["--pairs", "1", "--seconds", "0.4", "--warmup", "0.1", "--cold-entries", "20000"]
    rows = "^batch of 100 from cache, 4 outstanding$|polling|^batch of 100 from disk, 1|^add 1024 B, 1 out|^loc"
    words += ["--subjects", "ours,bound,syncs", "--only", rows, "--directory", str(tmp_path / "data")]
    done = CliRunner().invoke(main, [*words, "--results", str(results)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    kept = {line["row"]: line for line in map(json.loads, results.read_text().splitlines())}
    assert len(kept) == 5
    for line in kept.values():
        assert line["card"]["cores"] > 0
        assert figure(line["results"]["ours"][0], "entries_s") or line["row"] == "location index"
    (lone,) = (v for v in kept["add 1024 B, 1 outstanding"]["verdicts"] if v["against"] == "syncs")
    assert lone["value"] > 0
    against_bound = [v for line in kept.values() for v in line["verdicts"] if v["against"] == "bound"]
    assert len(against_bound) == 4
    assert all(verdict["value"] > 0 for verdict in against_bound)
    assert not (tmp_path / "data").exists()


def kept(row: str, **results: list[dict[str, Any]]) -> str:
    """Return a line of the results."""
    return json.dumps({"row": row, "results": results})


def test_the_table_has_the_newest_complete_results() -> None:
    """Results without a subject that the row is compared with do not replace older ones that have it."""
    name = ROWS[0].name
    lines = [
        kept(name, ours=[result(10)], java=[result(5)], bound=[result(20)]),
        kept(name, ours=[result(3000, 2500)], java=[result(1000, 9000)], bound=[result(4000)]),
        kept(name, ours=[result(99)], java=[result(1)]),
        kept("start to first answer", ours=[{"seconds": 0.5}], java=[{"seconds": 2.0}]),
        kept("a row of earlier times", ours=[result(1)]),
    ]
    assert table(lines)[2:] == [
        f"| {name} | 3,000/s | 1,000/s | 3 | 0.75 | 2.5 | 9 |  |  |",
        "| start to first answer | 0.5 s | 2 s | 0.25 |  |  |  |  |  |",
    ]


def test_the_readme_has_this_table() -> None:
    """README.md says what was measured last."""
    readme = (RESULTS.parents[2] / "README.md").read_text()
    assert "\n".join(table(RESULTS.read_text().splitlines())) in readme
