"""What every job of `bkpipe` has: options, units that are done once, a summary, an exit code."""

import json
from pathlib import Path

import click
import pytest

from bookie.errors import IllegalOperation
from bookie.spark.job import Cluster, Job, with_cluster, with_job, with_spark
from bookie.spark.sessions import Sessions
from bookie.terminal import lazy


@click.group()
def group() -> None:
    """A command with one job."""


@group.command()
@click.option("--fail-at", default="")
@with_cluster
@with_spark
@with_job
def count(job: Job, cluster: Cluster, spark: Sessions, fail_at: str) -> int:
    """Units with letters for names."""
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
    """Dry runs change nothing; what was done before an error is not done again; the summary is the same in the file."""
    words = ["count", "-u", "grpc://x", "--client", "a=b=c", "--state", str(tmp_path / "s"), "-o", "json"]
    words += ["--summary", str(tmp_path / "summary.json"), "--master", "local[1]"]
    assert lazy.run(group, "bkpipe", [*words, "--dry-run"]) == 0
    planned = json.loads(capsys.readouterr().out)
    assert (planned["status"], [one["done"] for one in planned["units"]]) == ("planned", [False] * 3)
    assert not (tmp_path / "s").exists()
    assert lazy.run(group, "bkpipe", [*words, "--fail-at", "b"]) == lazy.EXIT_FAILED
    assert capsys.readouterr().err == "bkpipe: b cannot be done\n"
    assert lazy.run(group, "bkpipe", words) == lazy.EXIT_PARTIAL
    told = json.loads(capsys.readouterr().out)
    assert told == json.loads((tmp_path / "summary.json").read_text())
    assert (told["status"], told["exit_code"], told["resumed_units"]) == ("partial", 3, 1)
    assert [one["size"] for one in told["units"]] == [97, 98, 99]
    assert (told["client"], told["master"]) == ({"a": "b=c"}, "local[1]")


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["count"], 1, "-u"),
        (["count", "-u", "grpc://x", "--conf", "spark.x"], 2, "'spark.x' is not KEY=VALUE"),
        (["count", "-u", "grpc://x", "--client", "=1"], 2, "'=1' is not KEY=VALUE"),
    ],
)
def test_an_error_is_one_line(words: list[str], code: int, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    """It names the option and the value."""
    assert lazy.run(group, "bkpipe", words) == code
    assert says in capsys.readouterr().err
