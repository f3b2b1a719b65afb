"""The Spark session of a job: where it runs, and on which Python. pyspark is loaded when one is opened."""

import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bookie.errors import IllegalOperation, ToolRefused
from bookie.spark.versions import check_java, check_packages

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["cause_of", "Sessions"]

QUIET = {
    "spark.log.level": "ERROR",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.python.unix.domain.socket.enabled": "true",
}
"""What a job sets unless --conf says otherwise: a task costs a third less over a socket file than over TCP."""


@dataclass(frozen=True, slots=True)
class Sessions:
    """Spark as the command line has it."""

    master: str
    conf: Mapping[str, str]

    @contextmanager
    def open(self, name: str) -> Iterator["SparkSession"]:
        """With our formats registered; it ends with the block, unless there was one before, which is used as it is.

        ConfigurationError: Spark, Arrow or Java is missing or unsuitable. IllegalOperation: Spark does not start.
        ToolRefused: a query of the block failed; it tells our own error where one was the cause.
        """
        check_packages()
        from pyspark.errors import PySparkException  # noqa: PLC0415
        from pyspark.sql import SparkSession  # noqa: PLC0415

        from bookie.spark import register  # noqa: PLC0415

        running = SparkSession.getActiveSession()
        if running is not None:
            register(running)
            try:
                yield running
            except PySparkException as error:
                raise ToolRefused(cause_of(str(error))) from error
            return
        check_java()
        # Workers must be this very Python: another one has neither our package nor the same Arrow.
        os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
        builder = SparkSession.builder.appName(f"bkpipe {name}").master(self.master)
        for key, value in {**QUIET, **self.conf}.items():
            builder = builder.config(key, value)
        try:
            session = builder.getOrCreate()
        except PySparkException as error:
            raise IllegalOperation(f"Spark does not start at {self.master}: {error}".splitlines()[0]) from error
        try:
            register(session)
            yield session
        except PySparkException as error:
            raise ToolRefused(cause_of(str(error))) from error
        finally:
            session.stop()


def cause_of(text: str) -> str:
    """The one line that says why, out of what Spark tells of a failed query."""
    ours = re.findall(r"^\s*bookie\.errors\.\w+: (.+)$", text, re.MULTILINE)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return str(ours[-1]) if ours else lines[0] if lines else "Spark failed without a word"
