"""Spark finds our formats by itself, and one that cannot be loaded hides no other."""

import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


def test_each_format_has_its_module() -> None:
    """The modules that Spark looks for match the table of formats, and the wheel contains them all."""
    discovery = pytest.importorskip("bookie.spark.discovery", exc_type=ImportError)
    found = {path.stem for path in (ROOT / "bookie/spark/discovered").glob("*.py")}
    assert found == {discovery.module_of(name).rpartition(".")[2] for name in discovery.FORMATS}
    assert {discovery.deferred(name).name() for name in discovery.FORMATS} == set(discovery.FORMATS)
    packaged = (ROOT / "pyproject.toml").read_text()
    assert all(f'"{name}"' in packaged for name in found)


def test_the_modules_load_nothing_of_ours_but_their_helpers() -> None:
    """What Spark imports in every session, for any format, is light: no compiled module, no client, no Arrow."""
    pytest.importorskip("pyspark", exc_type=ImportError)
    program = """
        import sys, pyspark.sql.datasource
        before = set(sys.modules)
        import pyspark_bookkeeper, pyspark_bookkeeper_ledgers
        print(*sorted(set(sys.modules) - before))
    """
    path = str(ROOT / "bookie/spark/discovered")
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = [{path!r}, {str(ROOT)!r}]\n{textwrap.dedent(program)}"],
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = set(done.stdout.split())
    assert loaded == {
        "bookie",
        "bookie.spark",
        "bookie.spark.discovery",
        "bookie.spark.idle_workers",
        "pyspark_bookkeeper",
        "pyspark_bookkeeper_ledgers",
    }


def test_a_package_that_cannot_be_loaded_hides_no_other_data_source(tmp_path: Path) -> None:
    """Spark's own search finds the other formats, and our modules warn why they provide nothing."""
    pytest.importorskip("pyspark", exc_type=ImportError)
    (tmp_path / "pyspark_other.py").write_text(
        "from pyspark.sql.datasource import DataSource\n\nclass DefaultSource(DataSource):\n"
        "    @classmethod\n    def name(cls):\n        return 'other'\n"
    )
    program = """
        import io, sys
        from pyspark.sql.worker import lookup_data_sources
        sys.modules["bookie"] = None
        out = io.BytesIO()
        lookup_data_sources._main(io.BytesIO(), out)
        found = out.getvalue()
        print(int.from_bytes(found[:4], "big"), found[8 : 8 + int.from_bytes(found[4:8], "big")].decode())
    """
    paths = [str(ROOT / "bookie/spark/discovered"), str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = {paths!r}\n{textwrap.dedent(program)}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == ["1", "other"], done.stderr
    assert "format bookkeeper-replicas cannot be loaded" in done.stderr


@pytest.mark.interop
def test_a_format_that_cannot_be_loaded_says_so_when_it_is_used(spark: Any) -> None:
    """Its error is one line with the cause."""
    from bookie.spark import discovery

    class DefaultSource(discovery.Deferred):
        """A format whose module cannot be imported."""

        format_name = "bookkeeper-nowhere"

    spark.dataSource.register(DefaultSource)
    with pytest.raises(Exception, match=r"format bookkeeper-nowhere cannot be loaded: .*pip install"):
        spark.read.format("bookkeeper-nowhere").load()
