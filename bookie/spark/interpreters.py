"""The Python interpreter of Spark's workers, which must have this package. Driver.

Spark starts `PYSPARK_PYTHON`, or else the `python3` on PATH. That is another interpreter than the driver's if the
driver was started from a virtual environment that is not activated.
"""

import logging
import os
import subprocess
import sys
from typing import TYPE_CHECKING

from bookie.errors import ConfigurationError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["check_workers"]

VARIABLE = "PYSPARK_PYTHON"
ANSWER_S = 60.0
PACKAGES = ("bookie", "pyspark", "pyarrow")
PROBE = (
    "import importlib.util as u, sys; "
    f"print('.'.join(map(str, sys.version_info[:2])), *[n for n in {PACKAGES!r} if u.find_spec(n) is None])"
)
"""Prints the version of an interpreter, and the packages that it lacks."""

log = logging.getLogger(__name__)


def check_workers(spark: "SparkSession") -> None:
    """Let the workers of a local session run the driver's interpreter, unless `PYSPARK_PYTHON` names another one.

    That one is checked. Executors on other machines are not asked, but the driver must have their interpreter, too,
    because it plans with it. A log line says which one they will run if none is named.

    Args:
        spark: the session; nothing is done for sessions of Spark Connect, whose workers belong to the server.

    Raises:
        ConfigurationError: the interpreter cannot be started, has another version than the driver's, lacks a
            package, or is at a relative path that the driver does not have.
    """
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        return
    context = spark.sparkContext
    named = os.environ.get(VARIABLE)
    if not context.master.startswith("local"):
        if not named:
            log.warning(
                "%s is not set, so executors run the python3 of their PATH; set it to an interpreter that has bookie",
                VARIABLE,
            )
        elif os.sep in named and not os.path.exists(named):  # noqa: PTH110  # a Path would lose the leading ./
            raise ConfigurationError(
                f"{VARIABLE}={named}: the driver does not have it, and plans queries with it, too, when the formats are"
                " registered; let Spark find the formats by itself, or link this path to an environment here"
            )
    elif not named:
        context.pythonExec = sys.executable
    elif named != sys.executable:
        _check(named)


def _check(interpreter: str) -> None:
    ours = "{}.{}".format(*sys.version_info)

    def refused(why: str) -> ConfigurationError:
        return ConfigurationError(f"{VARIABLE}={interpreter}: {why}; set it to {sys.executable}, or unset it")

    try:
        done = subprocess.run([interpreter, "-c", PROBE], capture_output=True, text=True, check=False, timeout=ANSWER_S)  # noqa: S603
    except OSError as error:
        raise refused(f"it cannot be started ({error.strerror})") from None
    except subprocess.TimeoutExpired:
        raise refused(f"it does not answer within {ANSWER_S:.0f} s") from None
    version, *lacking = done.stdout.split() or [""]
    if done.returncode or not version:
        raise refused("it is not a Python interpreter")
    if version != ours:
        raise refused(f"it is Python {version}, but the driver's is {ours}")
    if lacking:
        raise refused(f"it lacks {', '.join(lacking)}")
