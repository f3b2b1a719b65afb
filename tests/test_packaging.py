"""What a source distribution and a wheel contain, and that making the former compiles nothing."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


NAMES = {"bookie", "bookie_admin"}


def packed(kind: str, directory: Path, **variables: str) -> tuple[Path, Path]:
    """Copy the files that git knows to an empty tree; return it, and the distribution of this kind made from it."""
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.decode()
    tree, made = directory / "tree", directory / "made"
    for name in filter(None, names.split("\0")):
        if (ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tree / name)
    environment = {key: value for key, value in os.environ.items() if not key.startswith("BOOKIE_")} | variables
    command = [sys.executable, "setup.py", "--quiet", kind, "--dist-dir", str(made)]
    subprocess.run(command, cwd=tree, env=environment, check=True, capture_output=True)
    (archive,) = made.iterdir()
    return tree, archive


@pytest.mark.thorough
def test_a_source_distribution(tmp_path: Path) -> None:
    """It has the sources of every module, and no test. Metadata and sources are written without translating to C."""
    tree, archive = packed("sdist", tmp_path)
    assert not (tree / "build").exists()
    with tarfile.open(archive) as opened:
        held = {name.partition("/")[2] for name in opened.getnames()}
    modules = {str(path.relative_to(tree)) for path in (tree / "bookie/_fast").rglob("*.p[yx][xd]")}
    assert modules
    assert modules - held == set()
    assert not [name for name in held if name.startswith(("tests/", "perf/")) or name.endswith(".so")]


@pytest.mark.thorough
def test_a_wheel(tmp_path: Path) -> None:
    """All top-level names are the project's, so that none can collide with a user's package; `pyspark_bookkeeper*` are
    the names by which Spark finds the formats. Of `bookie_admin` every file is there. Compiled modules are left out.

    The description for a package index is README.md, and every link in it leads somewhere from there, too. The URLs
    name the home of the protocol.
    """
    tree, archive = packed("bdist_wheel", tmp_path, BOOKIE_MODULES_BUILT="1")
    with zipfile.ZipFile(archive) as opened:
        held = {name for name in opened.namelist() if ".dist-info/" not in name}
        (described,) = (name for name in opened.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = message_from_bytes(opened.read(described))
    tops = {name.partition("/")[0] for name in held}
    assert {name for name in tops if not (name.startswith("pyspark_bookkeeper") and name.endswith(".py"))} == NAMES
    ours = {str(path.relative_to(tree / "admin")) for path in (tree / "admin").rglob("*") if path.is_file()}
    assert len(ours) > 100
    assert ours - held == set()
    text = str(metadata.get_payload())
    assert metadata["Description-Content-Type"].startswith("text/markdown")
    assert "docs/install.md" in text
    assert "Apache BookKeeper, https://bookkeeper.apache.org" in metadata.get_all("Project-URL", [])
    links = re.findall(r"\]\(([^)]*)\)", text)
    assert links
    assert [link for link in links if not link.startswith("https://")] == []
