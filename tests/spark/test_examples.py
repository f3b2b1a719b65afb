"""The Spark examples run as they are, each in a cluster that it starts itself; the session that they use remains."""

import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = [
    pytest.mark.interop,
    pytest.mark.leaks("gRPC keeps its own threads and their descriptors as long as the process lives"),
]

EXAMPLES = Path(__file__).resolve().parents[2] / "docs/examples"


def call(monkeypatch: pytest.MonkeyPatch, spark: Any, name: str, *words: str) -> None:
    """Call an example as from the command line."""
    monkeypatch.setattr(sys, "argv", [name, *words])
    monkeypatch.setattr(type(spark), "stop", lambda _: None)
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")


def test_the_words_of_a_live_log(
    spark: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The example counts words over two ledgers, in which each word stands once."""
    call(monkeypatch, spark, "spark_word_count.py", "30")
    *words, last = capsys.readouterr().out.splitlines()
    assert [line.split() for line in words] == [
        ["a", "30"],
        ["is", "30"],
        ["once", "20"],
        ["counted", "10"],
        ["each", "10"],
    ]
    assert last.startswith("170 words of 30 sentences, counted in ")


def test_a_night(
    spark: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Audited, exported and read back; report, manifest and states are in the directory of the day."""
    with pytest.raises(SystemExit) as end:
        call(monkeypatch, spark, "nightly_export.py", str(tmp_path))
    assert end.value.code == 0
    assert capsys.readouterr().out.splitlines()[-1] == "0 findings; 3000 entries exported, 3000 read back"
    (day,) = tmp_path.iterdir()
    assert {"audit.json", "audit.state", "export.json", "export.state"} <= {one.name for one in day.iterdir()}
    assert (day / "audit/report.html").exists()
    assert (day / "data/manifest.json").exists()
