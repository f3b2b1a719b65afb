"""The job `simulate-placement`: tables, plots, resumed runs, and one line for each wrong option."""

import csv
import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from bookie.spark.bkpipe import run

SMALL = ["simulate-placement", "--bookies", "30", "--racks", "5", "--ledgers", "3000", "--weights", "uniform",
         "--weights", "median:3", "--add", "3@0.5"]  # fmt: skip


@pytest.mark.thorough
def test_runs_are_compared_drawn_and_resumed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each run has a row and a course; results do not depend on the number of processes; finished runs are kept."""
    words = [*SMALL, "--state", str(tmp_path / "state"), "-o", "json"]
    assert run([*words, "--to", str(tmp_path / "out"), "--workers", "2"]) == 0
    reported = json.loads(capsys.readouterr().out)
    assert [one["scenario"] for one in reported["runs"]] == ["rack uniform seed 1", "rack median:3 seed 1"]
    drawings = sorted(path.name for path in (tmp_path / "out").glob("*.svg"))
    assert len(drawings) == 5
    for name in drawings:
        assert ET.fromstring((tmp_path / "out" / name).read_text()).tag.endswith("svg")  # noqa: S314  # our own file
    rows = list(csv.DictReader((tmp_path / "out/course.csv").read_text().splitlines()))
    assert len({row["scenario"] for row in rows}) == 2
    assert "median:3" in (tmp_path / "out/report.html").read_text()
    assert run(words) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["resumed_units"] == 2
    assert again["runs"] == reported["runs"]
    assert run([*SMALL, "-o", "json", "--workers", "1"]) == 0
    assert json.loads(capsys.readouterr().out)["runs"] == reported["runs"]


def test_a_dry_run_lists_them(capsys: pytest.CaptureFixture[str]) -> None:
    """It lists all combinations of seeds, policies and weights."""
    assert run([*SMALL, "--dry-run", "--seeds", "2", "--policy", "rack", "--policy", "default"]) == 0
    assert capsys.readouterr().out.count(" seed ") == 8


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--add", "x@2"], "--add 'x@2': must be the number of bookies"),
        (["--disks", "4q"], "'4q' is not a number followed by"),
        (["--filled", "0.9-0.1"], "--filled 0.9-0.1"),
        (["--write-quorum", "4"], "--write-quorum 4: must not exceed the ensemble size 3"),
        (["--weights", "max:1"], "weights 'max:1'"),
        (["--poll", "0"], "--poll"),
    ],
)
def test_wrong_options(words: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong option ends the job with one line, before anything runs."""
    assert run([*SMALL, *words]) == 1
    reported = capsys.readouterr().err
    assert says in reported
    assert reported.count("\n") == 1
