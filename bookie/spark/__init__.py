"""Spark data sources and sinks for ledgers, and batch jobs on entire clusters.

    spark.read.format("bookkeeper").option("metadataServiceUri", uri).option("ledgers", "12,15-18").load()

Spark finds the formats by itself where this package is installed (see `discovered`); elsewhere, `register(spark)`
makes them known. docs/spark.md describes the formats and their options. Only modules that Spark calls import pyspark,
and pyarrow is imported inside functions, so `import bookie` needs neither.

Formats:
    discovery    the formats, and the class that stands for each until it is used
    discovered/  one top-level module for each format, which is how Spark finds data sources
    interpreters the Python of Spark's workers
    idle_workers workers end in silence when Spark has closed their socket
    versions     checks that Spark, Arrow and Java are present in a suitable version
    options      parsing and checking the options of a format; the cluster and its client settings
    schemas      the columns of each format, as Spark and Arrow schemas
    clients      the BookKeeper client of a worker process, shared by its tasks
    source/      reading with format `bookkeeper`
    sink/        writing with format `bookkeeper`
    formats/     the other formats: files of a stopped bookie; ledgers, bookies and replicas of a cluster

Jobs:
    bkpipe       the command-line tool, which runs a job by its name
    jobs/        one module for each job
    job          what all jobs share: dry run, progress, summary, state, cluster and Spark options
    job_options  options that several jobs share
    sessions     the Spark session of a job
    state        the finished units of a job on disk, so that it can be resumed
    planning     units of work that stay the same when a job is resumed
    parallel     runs one function with many arguments, in processes or on Spark
    runs         runs of a job that need no cluster, each done once
    findings     what an audit found, and how to repair it
    contents     compares the entries of two clusters by checksums
    restoring    the task that re-replicates ledgers
    plots        SVG plots, and HTML pages of them
    simulation/  simulates how a cluster fills up under a placement policy
    reread/      replays a bookie's access log against a model of its read cache
"""

from typing import TYPE_CHECKING

from bookie.spark.idle_workers import end_in_silence

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["register"]

end_in_silence()  # whatever a worker does for this package, it imports this first


def register(spark: "SparkSession") -> None:
    """Register the formats of this package with a Spark session.

    This is only needed where Spark does not find them by itself, for example because its workers run another Python:
    those of a local session run the driver's from then on, unless `PYSPARK_PYTHON` is set. Calling it again has no
    effect.

    Args:
        spark: the session to register the formats with.

    Raises:
        ConfigurationError: `PYSPARK_PYTHON` names an interpreter that lacks this package, or one of another version.
    """
    from bookie.spark.discovery import FORMATS, deferred  # noqa: PLC0415  # pyspark
    from bookie.spark.interpreters import check_workers  # noqa: PLC0415

    check_workers(spark)
    for name in FORMATS:
        spark.dataSource.register(deferred(name))
