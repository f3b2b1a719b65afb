"""The Spark session of a job: its master, settings and Python interpreter. pyspark is imported when a session is
opened.
"""

import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bookie.errors import IllegalOperation, ToolRefused
from bookie.spark.versions import check_java, check_packages

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["cause_of", "Sessions"]

LOG = Path(__file__).with_name("log4j2.properties")
QUIET = {
    "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={LOG.as_uri()}",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.python.unix.domain.socket.enabled": "true",
}
"""Settings of a job's session, unless --conf overrides them. Unix domain sockets make a task a third cheaper than
TCP.
"""


@dataclass(frozen=True, slots=True)
class Sessions:
    """The Spark session as the command line describes it.

    Attributes:
        master: the master URL.
        conf: settings of Spark by key.
    """

    master: str
    conf: Mapping[str, str]

    @contextmanager
    def open(self, name: str) -> Iterator["SparkSession"]:
        """Open a session with the formats registered and yield it; stop it at the end.

        If the process already has an active session, that one is used and left running.

        Args:
            name: the name of the job, for Spark's application name.

        Raises:
            ConfigurationError: Spark, Arrow or Java is missing or unsuitable.
            IllegalOperation: Spark does not start.
            ToolRefused: a query in the block failed; the text is that of the error of this package, if one was the
                cause.
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
        # Workers must run the same Python: another one may lack this package or have a different Arrow.
        os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
        builder = SparkSession.builder.appName(f"bkpipe {name}").master(self.master)
        for key, value in {**QUIET, **self.conf}.items():
            builder = builder.config(key, value)
        try:
            session = builder.getOrCreate()
        except PySparkException as error:
            raise IllegalOperation(
                f"Spark does not start with --master {self.master}: {error}".splitlines()[0]
            ) from error
        try:
            register(session)
            yield session
        except PySparkException as error:
            raise ToolRefused(cause_of(str(error))) from error
        finally:
            session.stop()


def cause_of(text: str) -> str:
    """Return the line that gives the cause, out of Spark's report of a failed query."""
    ours = re.findall(r"^\s*bookie\.errors\.\w+: (.+)$", text, re.MULTILINE)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return str(ours[-1]) if ours else lines[0] if lines else "Spark failed without a message"
