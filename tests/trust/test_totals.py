"""The totals of the trust programme: what is counted, how it is summed, and how machines share the seeds."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from tests.trust.programs import PROGRAMS, SEEDS, Chunk, Share, counted, play
from tests.trust.report import BEGIN, END, report


def chunk(program: str, commit: str, findings: int = 0, **counts: int) -> Chunk:
    return Chunk(program, 0, counts, ["seed 1: L1"] * findings, 1800.0, commit, "2 cores")


def test_a_report_sums_chunks_by_program_commit_and_machine(tmp_path: Path) -> None:
    """Files of two machines are joined in the order of the programs. Other rows stay, as does the rest of the page."""
    files = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    first = [chunk("kills", "aaa", lives=3, kills=30), chunk("engine", "aaa", findings=1, worlds=1500)]
    second = [chunk("engine", "aaa", worlds=500), chunk("engine", "bbb", worlds=7)]
    for file, chunks in zip(files, (first, second), strict=True):
        file.write_text("".join(json.dumps(asdict(one)) + "\n" for one in chunks))
    page = tmp_path / "trust.md"
    old = [f"| worlds of the engine | `{name}` | 2 cores | 5 worlds | 0 | 0.10 |" for name in ("older", "aaa")]
    page.write_text("\n".join(["before", BEGIN, "| What |", "| --- |", *old, END, "after\n"]))
    report(page, files)
    written = page.read_text()
    report(page, files)
    assert page.read_text() == written
    lines = page.read_text().splitlines()
    assert (lines[0], lines[-1]) == ("before", "after")
    assert lines[4:6] == [
        "| worlds of the engine | 3 | 2,012 worlds | 1 | 1.60 |",
        "| real bookies, killed under load | 1 | 3 lives, 30 kills | 0 | 0.50 |",
    ]
    assert lines[11:15] == [
        old[0],
        "| worlds of the engine | `aaa` | 2 cores | 2,000 worlds | 1 | 1.00 |",
        "| worlds of the engine | `bbb` | 2 cores | 7 worlds | 0 | 0.50 |",
        "| real bookies, killed under load | `aaa` | 2 cores | 3 lives, 30 kills | 0 | 0.50 |",
    ]


def test_what_a_program_counts() -> None:
    """The last line has the totals; times, failures and rates are none."""
    assert counted("seed 3: L1\n200 seeds, 1 failed, 18 s, 11 seeds/s\n") == {"seeds": 200}
    assert counted("9 executions, 9 wire_frames.request_v3, 0 failed, 67 s") == {
        "executions": 9,
        "wire_frames.request_v3": 9,
    }
    assert counted("30 worlds, 95 runs, 24 cuts, 0 failed, 35/min") == {"worlds": 30, "runs": 95, "cuts": 24}
    assert counted("") == {}


def test_machines_never_draw_the_same_seed() -> None:
    """The shares of three machines do not overlap, and a share outside its machines is refused."""
    width = SEEDS // 3
    for number in (1, 2, 3):
        for _ in range(100):
            first = Share.of(f"{number}/3").draw(1000)
            assert (number - 1) * width <= first < first + 1000 <= number * width
    with pytest.raises(ValueError, match="share 4/3"):
        Share.of("4/3")


def test_a_program_that_dies_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    """A chunk without totals, or with a bad exit status and no finding, is not counted as a success."""
    monkeypatch.setitem(PROGRAMS, "kills", PROGRAMS["kills"].__class__("kills", ("tests.crash", "no_such_scenario"), 1))
    played = play("kills", "aaa", Share())
    assert played.counts == {}
    assert ["ended with status 2" in finding for finding in played.findings] == [True]
