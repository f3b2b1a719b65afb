"""Wheels, installed into fresh environments: `make wheels` builds them and runs this."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.fixtures.java_peer import JavaUnavailable, cache_directory, find_java

DIRECTORY = os.environ.get("BOOKIE_WHEELS")
WHEELS = sorted(Path(DIRECTORY).absolute().glob("*.whl")) if DIRECTORY else []
PYTHONS = os.environ.get("BOOKIE_WHEEL_PYTHONS", sys.executable).split()
TOP_LEVEL = ("bookie/", "bookie-", "bookie_admin/", "pyspark_bookkeeper")
SOURCES = (".c", ".h", ".pxd", ".pyx")
LEDGER = """
from bookie.client import BookKeeper
from bookie.local import LocalCluster

with LocalCluster(3) as cluster, BookKeeper(cluster.uri) as client:
    with client.create_ledger() as ledger:
        for number in range(1000):
            ledger.append(b"%d" % number)
    with client.open_ledger(ledger.id) as reader:
        found = [bytes(entry.data) for batch in reader.batches() for entry in batch]
assert found == [b"%d" % number for number in range(1000)], len(found)
"""
SPARK = """
from pyspark.sql import SparkSession
from bookie.local import LocalCluster

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", False).getOrCreate()
with LocalCluster(1) as cluster:
    options = {"metadataServiceUri": cluster.uri, "log": "rows"}
    frame = spark.range(100).selectExpr("cast(id AS string) AS value")
    frame.write.format("bookkeeper").options(ensembleSize=1, **options).mode("append").save()
    assert spark.read.format("bookkeeper").options(**options).load().count() == 100
"""

pytestmark = pytest.mark.skipif(not WHEELS, reason="BOOKIE_WHEELS names no directory with wheels; run make wheels")


def _java() -> Path | None:
    """Return the program `java`, if it is there."""
    try:
        return find_java(cache_directory())
    except JavaUnavailable:
        return None


def python_of(wheel: Path) -> str:
    """Return the interpreter for which the wheel was compiled."""
    tag = wheel.name.split("-")[2]
    for python in PYTHONS:
        command = [python, "-c", "import sys; print('cp%d%d' % sys.version_info[:2])"]
        if subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == tag:
            return python
    pytest.skip(f"there is no interpreter for {tag}")


@pytest.mark.parametrize("wheel", WHEELS, ids=lambda path: path.name)
def test_what_it_contains(wheel: Path) -> None:
    """It has compiled modules, interfaces and samples, and neither sources nor tests."""
    names = zipfile.ZipFile(wheel).namelist()
    assert "manylinux" in wheel.name
    assert not [name for name in names if not name.startswith(TOP_LEVEL)]
    assert not [name for name in names if name.endswith(SOURCES) or "/testing/" in name or "test_" in name]
    assert "bookie/samples/bk.conf" in names
    assert "bookie/py.typed" in names


@pytest.mark.parametrize("wheel", WHEELS, ids=lambda path: path.name)
def test_it_is_installed_and_works(wheel: Path, tmp_path: Path) -> None:
    """Commands, a cluster with a ledger, and Spark where there is Java."""
    subprocess.run([python_of(wheel), "-m", "venv", tmp_path / "venv"], check=True)
    away = tmp_path / "away"
    away.mkdir()
    java = _java()
    keep = {
        "HOME": os.environ["HOME"],
        "PATH": f"{tmp_path}/venv/bin:/usr/bin:/bin",
        "TMPDIR": str(tmp_path),
        "PWD": str(away),
    }
    if java:
        keep["JAVA_HOME"] = str(java.resolve().parent.parent)

    def run(*words: str) -> str:
        done = subprocess.run(words, cwd=away, env=keep, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
        return done.stdout

    run("pip", "install", "--quiet", f"{wheel}[spark]" if java else str(wheel))
    for command in ("bookie-server", "bkadmin", "bkpipe"):
        assert "Usage" in run(command, "--help")
    (away / "standalone.conf").write_text(run("bkadmin", "samples", "standalone.conf"))
    assert "is valid" in run("bookie-server", "--conf", "standalone.conf", "--check")
    run("python", "-c", LEDGER)
    if java:
        run("python", "-c", SPARK)
    run("pip", "uninstall", "--quiet", "--yes", "bookie")
    left = [path for path in (tmp_path / "venv").rglob("*bookie*") if "__pycache__" not in path.parts]
    assert not [path for path in left if path.is_file()]
