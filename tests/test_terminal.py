"""What commands print, for people and for programs; and how they end."""

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
from bookie.terminal.output import Bytes, Moment, show, show_again, show_long

ROW = {"name": "lag", "value": math.nan, "most": math.inf, "bytes": Bytes(2500), "at_ms": Moment(1_700_000_000_000)}


def test_programs_get_json_that_all_of_them_read(capsys: pytest.CaptureFixture[str]) -> None:
    """JSON has no nan and no infinity: they are null. Sizes and times stay numbers."""

    def refuse(constant: str) -> None:
        raise ValueError(constant)

    for printer in (show, show_again):
        printer("json", "rows", [ROW], worst=-math.inf)
        found = json.loads(capsys.readouterr().out, parse_constant=refuse)
        assert found["worst"] is None
        expected = {"name": "lag", "value": None, "most": None, "bytes": 2500, "at_ms": 1_700_000_000_000}
        assert found["rows"] == [expected]


def test_people_get_units_and_times(capsys: pytest.CaptureFixture[str]) -> None:
    """A time has no unit in its name; 0 is never; many facts of one kind stand below each other."""
    show("table", "rows", [ROW], last_ms=Moment(0), counters={f"c{k}": k for k in range(9)})
    head, row, last, title, *counters = capsys.readouterr().out.splitlines()
    assert head.split() == ["name", "value", "most", "bytes", "at"]
    assert "2.5KB" in row
    assert re.search(r"2023-11-1[45] \d\d:\d\d:20[+-]\d{4}$", row)
    assert (last, title) == ("last: never", "counters:")
    assert counters == [f"  c{k}: {k}" for k in range(9)]


def test_looks_one_after_the_other(capsys: pytest.CaptureFixture[str]) -> None:
    """A line of JSON each, a document of YAML each: what reads them need not guess where one ends."""
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
    """The same values for programs; for people a column becomes wider where it must, below one head."""
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
    """A page at a time is held. What stands in the way of the first row leaves nothing printed."""
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
    """Ctrl-C in the middle of the work: something may have been done. A question that is not answered: nothing was."""

    @click.group()
    def group() -> None:
        """Two commands."""

    @group.command()
    def works() -> None:
        """It is interrupted."""
        raise KeyboardInterrupt

    @group.command()
    def asks() -> None:
        """Nobody is there to be asked."""
        click.confirm("sure?", abort=True)

    assert lazy.run(group, "it", ["works"]) == lazy.EXIT_INTERRUPTED
    assert "interrupted; what was done until then stays" in capsys.readouterr().err
    monkeypatch.setattr("sys.stdin", io.StringIO())
    assert lazy.run(group, "it", ["asks"]) == lazy.EXIT_FAILED
    assert "nothing was done" in capsys.readouterr().err
