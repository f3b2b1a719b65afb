"""Ledgers in Spark: data sources and sinks, and whole-cluster jobs.

    spark.read.format("bookkeeper").option("metadataServiceUri", uri).option("ledgers", "12,15-18").load()

Spark finds the formats by itself where this package is installed (`discovered`); elsewhere `register(spark)` names
them. Only modules that Spark calls import pyspark, and pyarrow is imported by functions: `import bookie` needs neither.

discovery   which formats there are; the class that Spark sees in place of the real one until a format is used
discovered  one top-level module a format, as Spark looks for them
versions    the Spark, Arrow and Java that are needed
options     the options of a format: typed, any case, one clear error; a cluster and its client's settings
schemas     columns of a format, as Spark and as Arrow spell them
clients     the client of a worker process, shared by its tasks
source/     format `bookkeeper`, reading
formats/    files of a bookie offline; ledgers, bookies and replicas of a cluster
sink/       format `bookkeeper`, writing

bkpipe      the command: jobs by name
jobs/       one job a file
planning    units of a job that stay the same when it is called again
job         what every job has: dry run, progress, summary, a cluster, Spark
job_options options that several jobs have, each spelled once
state       what a job has done, for the same call to go on from
sessions    the Spark session of a job
plots       lines as SVG, and pages of them
findings    what an audit found, and what puts it right
contents    entries of two clusters beside each other, by checksums
restoring   ledgers that a lost bookie held, copied by a task
parallel    one function on many arguments, in processes or on Spark
runs        runs of a job that need no cluster, each done once
simulation/ how a cluster fills under a placement policy
reread/     a bookie's access log against its read cache, replayed
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["register"]


def register(spark: "SparkSession") -> None:
    """Make our formats known to a session that did not find them by itself. Twice is fine."""
    from bookie.spark.discovery import FORMATS, deferred  # noqa: PLC0415  # pyspark

    for name in FORMATS:
        spark.dataSource.register(deferred(name))
