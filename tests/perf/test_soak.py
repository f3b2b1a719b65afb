"""The soak of hours, in seconds, and what its report says of samples."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from perf.soak.report import figures, plot

ROOT = Path(__file__).resolve().parents[2]


def samples(rise_mb_hour: float) -> list[dict[str, object]]:
    """Return two hours of samples of a bookie whose memory rises all the time."""
    taken = {"anonymous_mb": 50.0, "descriptors": 100, "threads": 60, "disk_mb": 1000.0}
    return [
        {"at": at, "bookie": "bookie-1", "rss_mb": 80 + rise_mb_hour * at / 3600, **taken} for at in range(0, 7200, 60)
    ]


def minutes(*p99_ms: float) -> list[dict[str, object]]:
    """Return a minute of a writer for each p99."""
    return [
        {"at": 60.0 * number, "role": "writer", "entries_s": 500.0, "p50_ms": 1.0, "p99_ms": p99}
        for number, p99 in enumerate(p99_ms)
    ]


@pytest.mark.parametrize(
    ("rise", "p99", "steady"), [(0.5, [10, 12, 11], True), (2.0, [10, 12, 11], False), (0.5, [10, 40, 11], False)]
)
def test_drifts_are_noticed(rise: float, p99: list[float], steady: bool) -> None:
    """Memory may rise by 1 MB an hour after the first, and no minute may have three times the median p99."""
    found = figures(samples(rise), minutes(*p99))
    assert found["steady"] is steady
    assert found["rss_slope_mb_hour"]["bookie-1"] == pytest.approx(rise)
    assert "bookie-1" in plot(samples(rise), minutes(*p99), "rss_mb")
    assert "writer" in plot(samples(rise), minutes(*p99), "p99_ms")


@pytest.mark.thorough
def test_a_few_seconds(tmp_path: Path) -> None:
    """Clients and bookies run, and none of them ends by itself."""
    command = [sys.executable, "-m", "perf.soak", str(tmp_path), "--hours", "0.003", "--rate", "100"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    found = json.loads(done.stdout)
    assert found["failed"] == [], done.stderr
    assert (tmp_path / "ledgers").read_text().splitlines()
    assert (tmp_path / "memory.svg").exists()
    assert len((tmp_path / "soak.jsonl").read_text().splitlines()) >= 4
