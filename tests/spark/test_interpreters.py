"""The workers of a local session run the driver's Python, as in a virtual environment that is not activated."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bookie.client import BookKeeper
from bookie.errors import ConfigurationError
from bookie.spark import interpreters

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
    import sys
    from pyspark.sql import SparkSession
    from bookie.spark import register
    conf = {"spark.ui.enabled": "false", "spark.log.level": "ERROR"}
    spark = SparkSession.builder.master("local[1]").config(map=conf).getOrCreate()
    register(spark)
    frame = spark.read.format("bookkeeper").options(metadataServiceUri=sys.argv[1], ledgers=sys.argv[2]).load()
    print("entries:", frame.count())
    spark.stop()
"""


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A directory for PATH with a `python3` that has no packages."""
    other = tmp_path / "bin/python3"
    other.parent.mkdir()
    other.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "$@"\n')
    other.chmod(0o755)
    return other.parent


@pytest.mark.interop
@pytest.mark.leaks("the bookies of the session connect to each other")
def test_an_environment_that_is_not_activated(three_uri: str, elsewhere: Path) -> None:
    """A program that is started by its path finds the package in Spark's workers, too."""
    with BookKeeper(three_uri) as bk, bk.create_ledger() as ledger:
        ledger.append_async(b"x")
        ledger.append_async(b"y")
    env = {key: value for key, value in os.environ.items() if not key.startswith("PYSPARK_")}
    env |= {"PATH": f"{elsewhere}:{env['PATH']}", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", textwrap.dedent(PROGRAM), three_uri, str(ledger.id)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    assert "entries: 2" in done.stdout, done.stderr[-3000:]


def test_an_interpreter_that_cannot_do_it_is_refused(elsewhere: Path, tmp_path: Path) -> None:
    """The error names the variable, what is wrong, and what to set."""
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\nexit 1\n")
    script.chmod(0o755)
    old = tmp_path / "old"
    old.write_text("#!/bin/sh\necho 3.1\n")
    old.chmod(0o755)
    for path, says in (
        (elsewhere / "python3", "it lacks bookie, pyspark, pyarrow"),
        (script, "not a Python interpreter"),
        (old, "it is Python 3.1, but the driver's is 3."),
        (tmp_path / "nowhere", "cannot be started (No such file or directory)"),
    ):
        with pytest.raises(ConfigurationError) as refused:
            interpreters._check(str(path))
        assert says in str(refused.value)
        assert f"set it to {sys.executable}" in str(refused.value)
    interpreters._check(sys.executable)


def test_a_relative_path_that_only_executors_have(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The driver plans with the interpreter of formats that are registered, so it must have it at the same place."""
    far: Any = SimpleNamespace(sparkContext=SimpleNamespace(master="spark://h1:7077"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYSPARK_PYTHON", "./environment/bin/python")
    with pytest.raises(
        ConfigurationError, match=r"PYSPARK_PYTHON=\./environment/bin/python: the driver does not have it"
    ):
        interpreters.check_workers(far)
    (tmp_path / "environment/bin").mkdir(parents=True)
    (tmp_path / "environment/bin/python").touch()
    interpreters.check_workers(far)
    monkeypatch.setenv("PYSPARK_PYTHON", "python3")
    interpreters.check_workers(far)
