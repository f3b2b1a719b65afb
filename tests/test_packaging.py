"""What a source distribution contains, and that making one compiles nothing."""

import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.thorough
def test_a_source_distribution(tmp_path: Path) -> None:
    """It has the sources of every module, and no test. Metadata and sources are written without translating to C."""
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.decode()
    tree = tmp_path / "tree"
    for name in filter(None, names.split("\0")):
        if (ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tree / name)
    environment = {key: value for key, value in os.environ.items() if not key.startswith("BOOKIE_")}
    command = [sys.executable, "setup.py", "--quiet", "sdist", "--formats=gztar", "--dist-dir", str(tmp_path)]
    subprocess.run(command, cwd=tree, env=environment, check=True, capture_output=True)
    assert not (tree / "build").exists()
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        held = {name.partition("/")[2] for name in packed.getnames()}
    modules = {str(path.relative_to(tree)) for path in (tree / "bookie/_fast").rglob("*.p[yx][xd]")}
    assert modules
    assert modules - held == set()
    assert not [name for name in held if name.startswith(("tests/", "perf/")) or name.endswith(".so")]
