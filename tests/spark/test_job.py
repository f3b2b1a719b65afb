"""What all jobs of `bkpipe` share: options, units that are done once, a summary, an exit code."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import click
import pytest

from bookie.errors import IllegalOperation
from bookie.spark.job import Cluster, Job, with_cluster, with_job, with_spark
from bookie.spark.sessions import Sessions
from bookie.terminal import lazy

ROOT = Path(__file__).resolve().parents[2]


@click.group()
def group() -> None:
    """A command with one job."""


@group.command()
@click.option("--fail-at", default="")
@with_cluster
@with_spark
@with_job
def count(job: Job, cluster: Cluster, spark: Sessions, fail_at: str) -> int:
    """A job whose units are letters."""
    with job.open(uri=cluster.uri) as state:
        if job.dry_run:
            return job.end(({"unit": one, "done": one in state.done} for one in "abc"), called="units")
        for unit in job.left("abc", "units"):
            if unit == fail_at:
                raise IllegalOperation(f"{unit} cannot be done")
            state.note(unit, size=ord(unit))
        done = [{"unit": unit, **facts} for unit, facts in state.done.items()]
    return job.end(done, called="units", well=len(done) < 3, client=dict(cluster.settings), master=spark.master)


def test_a_job_goes_on_where_it_ended(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A dry run changes nothing; units finished before an error are not repeated; the file has the same summary."""
    words = ["count", "-u", "grpc://x", "--client", "a=b=c", "--state", str(tmp_path / "s"), "-o", "json"]
    words += ["--summary", str(tmp_path / "summary.json"), "--master", "local[1]"]
    assert lazy.run(group, "bkpipe", [*words, "--dry-run"]) == 0
    planned = json.loads(capsys.readouterr().out)
    assert (planned["status"], [one["done"] for one in planned["units"]]) == ("planned", [False] * 3)
    assert not (tmp_path / "s").exists()
    assert lazy.run(group, "bkpipe", [*words, "--fail-at", "b"]) == lazy.EXIT_FAILED
    assert capsys.readouterr().err == "bkpipe: b cannot be done\n"
    assert lazy.run(group, "bkpipe", words) == lazy.EXIT_PARTIAL
    reported = json.loads(capsys.readouterr().out)
    assert reported == json.loads((tmp_path / "summary.json").read_text())
    assert (reported["status"], reported["exit_code"], reported["resumed_units"]) == ("partial", 3, 1)
    assert [one["size"] for one in reported["units"]] == [97, 98, 99]
    assert (reported["client"], reported["master"]) == ({"a": "b=c"}, "local[1]")


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["count"], 1, "-u"),
        (["count", "-u", "grpc://x", "--conf", "spark.x"], 2, "'spark.x' is not of the form KEY=VALUE"),
        (["count", "-u", "grpc://x", "--client", "=1"], 2, "'=1' is not of the form KEY=VALUE"),
    ],
)
def test_an_error_is_one_line(words: list[str], code: int, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    """It has the option and the value."""
    assert lazy.run(group, "bkpipe", words) == code
    assert says in capsys.readouterr().err


def test_progress_is_for_terminals(tmp_path: Path) -> None:
    """There is a bar on standard error up to all units, including those of an earlier call, but only in a terminal."""
    program = "import sys; from bookie.terminal import lazy; from tests.spark.test_job import group; "
    program += "sys.exit(lazy.run(group, 'bkpipe', sys.argv[1:]))"
    words = [sys.executable, "-c", program, "count", "-u", "grpc://x", "--state", str(tmp_path / "s"), "-o", "json"]
    quiet = subprocess.run([*words, "--fail-at", "b"], cwd=ROOT, capture_output=True, timeout=60, check=False)
    assert (quiet.returncode, quiet.stderr) == (lazy.EXIT_FAILED, b"bkpipe: b cannot be done\n")
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm"}
    child = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=theirs, env=environment)
    os.close(theirs)
    drawn = b""
    try:
        while piece := os.read(ours, 4096):
            drawn += piece
    except OSError:
        pass  # a pseudoterminal reports in this way that the other end is closed
    finally:
        os.close(ours)
    out, _ = child.communicate(timeout=60)
    assert child.returncode == lazy.EXIT_PARTIAL
    assert json.loads(out)["resumed_units"] == 1
    assert b"units" in drawn
    assert b"100%" in drawn
