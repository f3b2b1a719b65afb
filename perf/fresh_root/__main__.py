"""`python -m perf.fresh_root`: time two paths of a new user, and the steps of the Dockerfile, in a copy of a system.

    debootstrap --variant=minbase --include=ca-certificates trixie SYSTEM
    python -m perf.fresh_root SYSTEM clone              # from a clone to a ledger that was written and read
    python -m perf.fresh_root SYSTEM wheel dist/...whl  # from a wheel to a count in Spark
    python -m perf.fresh_root SYSTEM image              # the Dockerfile, and a bookie in what it made

It needs root, and reaches the package indexes as this machine does. Bookies run in a network of their own. SYSTEM stays
as it is. Prints one JSON object with seconds of time and of CPU for each step.
"""

import json
import os
import shutil
import subprocess
from dataclasses import asdict
from pathlib import Path

import click

from perf.fresh_root.image import ROOT, Image
from perf.fresh_root.root import Root, Step

PLACE = ROOT / "build/perf/fresh_root"
CLONE_NEEDS = "python3-venv python3-dev gcc make"  # README.md
SPARK = """
from pyspark.sql import SparkSession
from bookie.local import LocalCluster

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", False).getOrCreate()
with LocalCluster(1) as cluster:
    options = {"metadataServiceUri": cluster.uri, "log": "rows"}
    frame = spark.range(100_000).selectExpr("cast(id AS string) AS value")
    frame.write.format("bookkeeper").options(ensembleSize=1, **options).mode("append").save()
    assert spark.read.format("bookkeeper").options(**options).load().count() == 100_000
"""
BOOKIE = """
{entry} & bookie=$!
python -m bookie.client.demo --entries 10000
kill -TERM $bookie
wait $bookie
"""


def apt(root: Root, packages: str) -> None:
    """Install packages of Debian as one step."""
    root.run(
        f"apt-get update -qq && apt-get install -y -qq --no-install-recommends {packages}", name=f"apt: {packages}"
    )


def report(steps: list[Step]) -> None:
    total = Step("all", sum(step.seconds for step in steps), sum(step.cpu_seconds for step in steps))
    print(json.dumps([asdict(step) for step in (*steps, total)], indent=1))


@click.group(help=(__doc__ or "").partition("\n")[0])
@click.argument("system", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.pass_context
def main(context: click.Context, system: Path) -> None:
    """Keep SYSTEM for the subcommands."""
    context.obj = system
    os.umask(0o022)  # directories that others may enter, as in a system


@main.command()
@click.pass_obj
def clone(system: Path) -> None:
    """From a clone of this repository to a ledger: what README.md says."""
    root = Root(PLACE / "clone").copy(system)
    apt(root, CLONE_NEEDS)
    subprocess.run(["git", "clone", "--quiet", "--no-local", ROOT, root.path("src")], check=True)
    root.run("make build", name="make build", where="/src")
    said = root.run("make run && make stop", name="make run", where="/src", network=False)
    assert "1,000,000" in said, said
    report(root.steps)


@main.command()
@click.argument("wheel", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--java", default="default-jre-headless", show_default=True, help="The package with a Java runtime.")
@click.pass_obj
def wheel(system: Path, wheel: Path, java: str) -> None:
    """From a WHEEL for the Python of SYSTEM to rows that Spark wrote and counted."""
    root = Root(PLACE / "wheel").copy(system)
    apt(root, f"python3-venv {java}")
    shutil.copy(wheel, root.path("/srv"))
    root.path("/srv/count.py").write_text(SPARK)
    root.run("python3 -m venv /opt/bookie", name="venv")
    root.run(f"/opt/bookie/bin/pip install -q '/srv/{wheel.name}[spark]'", name="pip install")
    root.run("PATH=/opt/bookie/bin:$PATH python /srv/count.py", name="write and count 100,000 rows", network=False)
    report(root.steps)


@main.command()
@click.pass_obj
def image(system: Path) -> None:
    """The Dockerfile step by step, then a bookie as its user, which writes, reads and stops in order."""
    python = Root(PLACE / "python").copy(system)
    apt(python, "python3-venv python3-dev python-is-python3")
    made = Image(python.directory, PLACE / "image")
    made.build((ROOT / "Dockerfile").read_text())
    here = {"BK_metadataServiceUri": "lmdb:///data/metadata", "BK_advertisedAddress": "127.0.0.1"}
    made.root.run(
        "set -e" + BOOKIE.format(entry=" ".join(made.entry)),
        name="a bookie as the image starts it",
        network=False,
        user=made.user,
        environment={**made.environment, **here, "BK_allowLoopback": "true", "HOME": "/"},
    )
    report([step for stage in made.stages.values() for step in stage.steps])


if __name__ == "__main__":
    main()
