"""Missing or unsuitable versions of Spark, Arrow and Java are reported exactly, with the way to get them."""

import importlib.metadata
from pathlib import Path

import pytest

from bookie.errors import ConfigurationError
from bookie.spark import versions


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ({"pyspark": "4.3.0", "pyarrow": "26.0.1"}, None),
        ({"pyspark": "4.2.0.dev1", "pyarrow": "18.0.0"}, None),
        ({"pyspark": "4.1.9", "pyarrow": "26.0.1"}, "pyspark is 4.1.9; pyspark >= 4.2, < 5 is needed: pip install"),
        ({"pyspark": "5.0.0", "pyarrow": "26.0.1"}, "pyspark is 5.0.0; pyspark >= 4.2, < 5 is needed: pip install"),
        ({"pyspark": "4.3.0", "pyarrow": "17.0.0"}, "pyarrow is 17.0.0; pyarrow >= 18 is needed: pip install"),
        ({"pyspark": "4.3.0"}, "pyarrow is not installed; pyarrow >= 18 is needed: pip install"),
    ],
)
def test_packages(monkeypatch: pytest.MonkeyPatch, found: dict[str, str], message: str | None) -> None:
    """Missing, too old, too new, and suitable."""

    def version(package: str) -> str:
        if package not in found:
            raise importlib.metadata.PackageNotFoundError(package)
        return found[package]

    monkeypatch.setattr(versions, "version", version)
    if message is None:
        versions.check_packages()
        return
    with pytest.raises(ConfigurationError) as error:
        versions.check_packages()
    assert message in str(error.value)


def java(directory: Path, reported: str, *, whole: bool = True) -> Path:
    """A program that reports a Java version, with or without all modules."""
    program = directory / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n[ $1 = -version ] || {'true' if whole else 'exit 1'}\necho '{reported}' >&2\n")
    program.chmod(0o755)
    return program


def test_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """JAVA_HOME takes precedence over PATH; too old, incomplete and missing are distinguished."""
    new = java(tmp_path / "new", 'openjdk version "17.0.15" 2025-04-15')
    old = java(tmp_path / "old", 'java version "1.8.0_402"')
    monkeypatch.setenv("PATH", str(new.parent))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert versions.check_java() == new
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "old"))
    monkeypatch.setenv("PATH", f"{old.parent}:/usr/bin:/bin")
    with pytest.raises(
        ConfigurationError, match=r"bin/java is Java 8; Spark needs Java 17 or later: install Java 17 or 21"
    ):
        versions.check_java()
    java(tmp_path / "cut", 'openjdk version "21.0.8" 2025-07-15', whole=False)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "cut"))
    with pytest.raises(
        ConfigurationError, match=r"java lacks the module jdk\.incubator\.vector; Spark needs a complete"
    ):
        versions.check_java()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    with pytest.raises(ConfigurationError, match=r"JAVA_HOME=.*nowhere holds no bin/java; Spark needs Java 17"):
        versions.check_java()
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigurationError, match="no java on PATH and no JAVA_HOME; Spark needs Java 17"):
        versions.check_java()
