"""The job `thrash`: the curve from access logs, by ledger and client, plotted, and one line for an invalid log."""

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from bookie.spark.bkpipe import run
from bookie.spark.reread.access_log import COLUMNS

READERS = 60
ENTRIES = 40


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """The access log of readers of separate ledgers in turn: a rotated file and the newest one, entries of 64 KiB."""
    lines = [
        f"{entry * READERS + ledger},read,{ledger},{entry},65532,disk,1,{entry},10.0.0.{ledger % 3}:{4000 + ledger},9"
        for entry in range(ENTRIES)
        for ledger in range(READERS)
    ]
    half = len(lines) // 2
    for name, part in (("access.csv.1", lines[:half]), ("access.csv", [*lines[half:], "17,re"])):
        (tmp_path / name).write_text("\n".join([COLUMNS, *part]) + ("" if part[-1] == "17,re" else "\n"))
    return tmp_path / "access.csv"


def test_the_curve(log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A large cache reads each entry once; a small one reads entries again, but less often with less readahead."""
    words = ["thrash", str(log), "--cache", "32,1024", "--readahead", "16,1", "--segment", "4", "-o", "json"]
    assert run([*words, "--to", str(tmp_path / "out"), "--state", str(tmp_path / "state")]) == 0
    reported = {one["replay"]: one for one in json.loads(capsys.readouterr().out)["replays"]}
    assert reported["1024 MiB, 16 ahead"]["reads_per_entry"] == 1.0
    assert reported["32 MiB, 1 ahead"]["reads_per_entry"] == 1.0
    assert reported["32 MiB, 16 ahead"]["reads_per_entry"] > 1.3
    assert reported["32 MiB, 16 ahead"]["served"] == READERS * ENTRIES
    assert ET.fromstring((tmp_path / "out/thrash.svg").read_text()).tag.endswith("svg")  # noqa: S314  # our own file
    assert "32 MiB, 16 ahead" in (tmp_path / "out/report.html").read_text()
    assert run([*words, "--state", str(tmp_path / "state")]) == 0
    assert json.loads(capsys.readouterr().out)["resumed_units"] == 4


def test_by_ledger_and_client(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The ledgers or clients with the most disk reads, for the smallest cache."""
    words = ["thrash", str(log), "--cache", "32", "--readahead", "16", "--segment", "4", "-o", "json", "--by"]
    assert run([*words, "client"]) == 0
    clients = json.loads(capsys.readouterr().out)["clients"]
    assert {one["client"] for one in clients} == {"10.0.0.0", "10.0.0.1", "10.0.0.2"}
    assert sum(one["served"] for one in clients) == READERS * ENTRIES
    assert run([*words, "ledger", "--workers", "1"]) == 0
    assert len(json.loads(capsys.readouterr().out)["ledgers"]) == 20


def test_what_is_no_log(log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line names the file and its line."""
    (tmp_path / "other.csv").write_text("a,b\n")
    (tmp_path / "torn.csv").write_text(f"{COLUMNS}\n1,read,2\n")
    for name, says in (
        ("other.csv", "not an access log"),
        ("torn.csv", "line 2: not a line"),
        ("none.csv", "no such file"),
    ):
        assert run(["thrash", str(tmp_path / name), "--workers", "1"]) == 1
        reported = capsys.readouterr().err
        assert name in reported
        assert says in reported
    assert run(["thrash", str(log), "--cache", "0"]) == 1
    assert "--cache 0" in capsys.readouterr().err
