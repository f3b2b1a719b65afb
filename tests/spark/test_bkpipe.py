"""The command itself: every job exists and explains itself, and help loads nothing heavy."""

import subprocess
import sys
from pathlib import Path

import pytest

from bookie.spark.bkpipe import run
from bookie.spark.jobs import JOBS

ROOT = Path(__file__).resolve().parents[2]


def test_every_job_is_there_and_explains_itself(capsys: pytest.CaptureFixture[str]) -> None:
    """Every job of the list has a module; each has a dry run and a summary."""
    assert run(["--help"]) == 0
    listed = capsys.readouterr().out
    for name in JOBS:
        assert run([name, "--help"]) == 0
        helped = capsys.readouterr().out
        assert helped.startswith(f"Usage: bkpipe {name}")
        assert {"--dry-run", "--state", "--summary", "--output"} <= set(helped.replace(",", " ").split())
        assert name in listed


def test_a_range_that_nobody_can_list_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """This happens before a cluster is contacted."""
    ids = "0-999999999999"
    assert run(["export", "-u", "grpc://127.0.0.1:1", "--ledgers", ids, "--to", "nowhere"]) == 1
    assert (
        f"option ledgers='{ids}' of format export: names 1000000000000 ids; at most 1000000" in capsys.readouterr().err
    )


def test_secrets_of_the_client_are_not_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The state of a job contains no password of a cluster, and the next call may use another one."""
    (tmp_path / "logs").mkdir()
    for secret in ("xyzzy-1", "xyzzy-2"):
        words = ["logscan", str(tmp_path / "logs"), "--client", f"passwd={secret}", "--password", secret]
        assert run([*words, "--state", str(tmp_path / "state")]) == 0, capsys.readouterr().err
    kept = "".join(file.read_text() for file in (tmp_path / "state").iterdir())
    assert str(tmp_path / "logs") in kept
    assert "xyzzy" not in kept
    assert "xyzzy" not in capsys.readouterr().out


def test_help_loads_nothing_heavy() -> None:
    """Neither the list of jobs nor the help of a job loads Spark or its dependencies."""
    calls = "".join(f"run([{name!r}, '--help']);" for name in JOBS)
    code = f"import sys; from bookie.spark.bkpipe import run; run(['--help']);{calls} print('LOADED', *sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.rpartition("LOADED")[2].split())
    assert not loaded & {"pyspark", "pyarrow", "pandas", "numpy", "grpc", "kazoo", "rich", "yaml", "lmdb"}


@pytest.mark.interop
def test_spark_logs_nothing_of_its_start(three_uri: str) -> None:
    """Standard error has none of Spark's lines about its defaults, addresses and libraries."""
    pytest.importorskip("pyspark", reason="PySpark is not installed (make spark)")
    command = [sys.executable, "-m", "bookie.spark.bkpipe", "usage", "--by", "application", "-u", three_uri]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    of_spark = (" INFO ", " WARN ", "log4j", "log level", "SparkR")
    assert [line for line in done.stderr.splitlines() if any(part in line for part in of_spark)] == []
