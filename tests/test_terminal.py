"""The output of commands, for people and for programs, and their exit codes."""

import io
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import yaml

from bookie.terminal import lazy
from bookie.terminal.entry import EXIT_INTERRUPTED
from bookie.terminal.output import Bytes, Count, Moment, show, show_again, show_long

ROW = {"name": "lag", "value": math.nan, "most": math.inf, "bytes": Bytes(2500), "at_ms": Moment(1_700_000_000_000)}


def test_programs_get_json_that_all_of_them_read(capsys: pytest.CaptureFixture[str]) -> None:
    """nan and infinity, which JSON does not have, become null. Sizes and times remain numbers."""

    def refuse(constant: str) -> None:
        raise ValueError(constant)

    for printer in (show, show_again):
        printer("json", "rows", [ROW], worst=-math.inf)
        found = json.loads(capsys.readouterr().out, parse_constant=refuse)
        assert found["worst"] is None
        expected = {"name": "lag", "value": None, "most": None, "bytes": 2500, "at_ms": 1_700_000_000_000}
        assert found["rows"] == [expected]


def test_people_get_units_and_times(capsys: pytest.CaptureFixture[str]) -> None:
    """The label of a time has no unit; 0 is never; a mapping with many items is printed with one item per line."""
    show("table", "rows", [ROW], last_ms=Moment(0), p99_9_ms=1, counters={f"c{k}": k for k in range(9)})
    head, row, last, percentile, title, *counters = capsys.readouterr().out.splitlines()
    assert percentile == "p99.9 ms: 1"
    assert head.split() == ["name", "value", "most", "bytes", "at"]
    assert "2.5 KB" in row
    assert re.search(r"2023-11-1[45] \d\d:\d\d:20[+-]\d{4}$", row)
    assert (last, title) == ("last: never", "counters:")
    assert counters == [f"  c{k}: {k}" for k in range(9)]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (77_330.4, "77,330"), (1_234_567.0, "1,234,567"), (229.123, "229.1"), (0.5, "0.5"), (0.0, "0"), (9.9999, "10"),
        (-12_000.0, "-12,000"), (0.00123456, "0.001235"), (1.5e-7, "1.5e-07"), (math.inf, "inf"), (100.0, "100"),
        (Bytes(229_123_000), "229 MB"), (Bytes(999), "999 B"), (Bytes(999_999), "1 MB"), (Bytes(0), "0 B"),
        (Bytes(1_200_000_000_000), "1.2 TB"), (Count(77_330), "77,330"), (77_330, "77330"),
    ],
)  # fmt: skip
def test_numbers_for_people(capsys: pytest.CaptureFixture[str], value: float, text: str) -> None:
    """Numbers of thousands have separators, not exponents, and sizes have three digits; ids stay as they are."""
    show("table", "", value=value)
    assert capsys.readouterr().out == f"value: {text}\n"
    show("json", "", value=value)
    assert json.loads(capsys.readouterr().out)["value"] == (None if math.isinf(value) else value)


def test_looks_one_after_the_other(capsys: pytest.CaptureFixture[str]) -> None:
    """Each result is one line of JSON or one document of YAML, so that readers know where it ends."""
    for _ in range(2):
        show_again("json", "rows", [{"a": 1}], b=2)
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == [{"rows": [{"a": 1}], "b": 2}] * 2
    for _ in range(2):
        show_again("yaml", "rows", [{"a": 1}], b=2)
    assert list(yaml.safe_load_all(capsys.readouterr().out)) == [{"rows": [{"a": 1}], "b": 2}] * 2


@pytest.mark.parametrize("count", [0, 1, 1001])
@pytest.mark.parametrize("facts", [{}, {"end": math.inf, "torn": True}])
def test_rows_without_number_look_like_others(
    capsys: pytest.CaptureFixture[str], count: int, facts: dict[str, object]
) -> None:
    """Programs get the same values; for people, a column becomes wider if necessary, below one header."""
    rows = [{"entry": k, "data": "x" * (k // 1000), "at_ms": Moment(0), "gone": None} for k in range(count)]
    for output, load in (("json", json.loads), ("yaml", yaml.safe_load)):
        show(output, "rows", rows, **facts)
        expected = load(capsys.readouterr().out)
        show_long(output, "rows", iter(rows), lambda: facts)
        assert load(capsys.readouterr().out) == expected
    show_long("table", "rows", iter(rows), lambda: facts)
    lines = capsys.readouterr().out.splitlines()
    assert lines[len(lines) - len(facts) :] == (["end: inf", "torn: yes"] if facts else [])
    if count:
        assert lines[0].split() == ["entry", "data", "at", "gone"]
        assert [int(line.split()[0]) for line in lines[1 : count + 1]] == list(range(count))
    else:
        assert lines[0] == "no rows"


def test_rows_are_shown_as_they_are_found(capsys: pytest.CaptureFixture[str]) -> None:
    """One page at a time is held. An error before the first row leaves no output."""
    held = []

    def rows() -> Iterator[dict[str, int]]:
        for k in range(5000):
            held.append(len(capsys.readouterr().out.splitlines()))
            yield {"k": k}

    show_long("table", "rows", rows())
    assert sum(held) >= 4000

    def none() -> Iterator[dict[str, int]]:
        yield {"size": Path("nowhere", "at all").stat().st_size}

    with pytest.raises(FileNotFoundError):
        show_long("json", "rows", none())
    assert capsys.readouterr().out.endswith("4999\n")


def test_an_interrupted_command_is_no_refused_one(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After Ctrl-C during the work, something may have been done; after an unanswered question, nothing was."""

    @click.group()
    def group() -> None:
        """A group of two commands."""

    @group.command()
    def works() -> None:
        """A command that is interrupted."""
        raise KeyboardInterrupt

    @group.command()
    def asks() -> None:
        """A command whose question nobody can answer."""
        click.confirm("sure?", abort=True)

    assert lazy.run(group, "it", ["works"]) == EXIT_INTERRUPTED
    assert "interrupted; what was done until then stays" in capsys.readouterr().err
    monkeypatch.setattr("sys.stdin", io.StringIO())
    assert lazy.run(group, "it", ["asks"]) == lazy.EXIT_FAILED
    assert "nothing was done" in capsys.readouterr().err
