"""The program that `test_under_fire` kills: a driver that streams one log into another, and restarts its query when it
has failed.

    python fire.py METADATA_URI FROM_LOG CHECKPOINT TO_LOG

It prints `started` when a query runs, and exits with 0 when everything is in the other log.
"""

import ctypes
import signal
import sys
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from tests.fixtures.spark import SETTINGS

OPTIONS = {"ensembleSize": "3", "writeQuorumSize": "3", "ackQuorumSize": "2", "orphanTtl": "1h"}
READING = {"startingOffsets": "earliest", "maxOffsetsPerTrigger": "300", "minPartitions": "2"}
# If it is killed while it writes the first file of a checkpoint, Spark finds the remains and refuses to start.
UNDETERRED = {"spark.sql.streaming.verifyCheckpointDirectoryEmptyOnStart": "false"}
PR_SET_PDEATHSIG = 1
FAILURES_MAX = 10
"""Of the query, in one life of the driver: by bookies and workers that are killed."""


def main(uri: str, source: str, checkpoint: str, log: str) -> None:
    """Run until nothing is left to read."""
    ctypes.CDLL(None).prctl(
        PR_SET_PDEATHSIG, signal.SIGKILL
    )  # the JVM ends with this process, which ends with the test
    builder: Any = SparkSession.builder.master("local[2,4]").appName("fire")
    for key, value in {**SETTINGS, **UNDETERRED}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    rows = spark.readStream.format("bookkeeper").options(metadataServiceUri=uri, log=source, **READING).load()
    sink = rows.select("value").writeStream.format("bookkeeper").options(metadataServiceUri=uri, log=log, **OPTIONS)
    for _ in range(FAILURES_MAX):
        query = sink.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
        print("started", flush=True)
        try:
            query.awaitTermination()
            spark.stop()
            return
        except StreamingQueryException as failure:
            print(str(failure).partition("\n")[0], file=sys.stderr, flush=True)
    sys.exit(f"the query failed {FAILURES_MAX} times")


if __name__ == "__main__":
    main(*sys.argv[1:])
