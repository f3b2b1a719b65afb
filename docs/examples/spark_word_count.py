"""Count the words of a log while it is being written. Needs `pip install 'bookie[spark]'`.

python docs/examples/spark_word_count.py
python docs/examples/spark_word_count.py 100 grpc://127.0.0.1:3182

Without a URI, the program starts a bookie. It writes the given number of sentences (100) to a log, twenty a second,
with a ledger for every 25, while Structured Streaming counts their words. It ends when every word has been counted.
"""

import sys
import tempfile
import threading
import time
from contextlib import ExitStack

from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

from bookie.client import BookKeeper
from bookie.local import LocalCluster

SENTENCES = ("a ledger is written once", "a log is a list of ledgers", "each entry is counted once")
LOG = "sentences"
PAUSE_S = 0.05


def write(uri: str, count: int) -> None:
    """Write sentences, one per entry; each ledger is appended to the log before its first entry."""
    with BookKeeper(uri) as bk:
        for first in range(0, count, 25):
            with bk.create_ledger(ensemble_size=1, write_quorum_size=1, ack_quorum_size=1, password=b"") as ledger:
                bk.logs.append(LOG, [ledger.id])
                for number in range(first, min(first + 25, count)):
                    ledger.append(SENTENCES[number % len(SENTENCES)].encode())
                    time.sleep(PAUSE_S)


def main(count: int, uri: str) -> None:
    """Count until all words are counted; print the most frequent ones and the total."""
    expected = sum(len(SENTENCES[number % len(SENTENCES)].split()) for number in range(count))
    with BookKeeper(uri) as bk:
        bk.logs.create(LOG)
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    entries = (
        spark.readStream.format("bookkeeper")
        .option("metadataServiceUri", uri)
        .option("log", LOG)
        .option("startingOffsets", "earliest")
        .load()
    )
    words = entries.select(sql.explode(sql.split(sql.decode("value", "utf-8"), " ")).alias("word"))
    writer, counted = threading.Thread(target=write, args=(uri, count)), 0
    with tempfile.TemporaryDirectory() as checkpoint:
        counts = words.groupBy("word").count().writeStream.outputMode("complete").format("memory").queryName("words")
        query = counts.option("checkpointLocation", checkpoint).start()
        query.processAllAvailable()  # Spark is up
        writer.start()
        while counted < expected:
            query.processAllAvailable()  # all that was confirmed when it was called
            counted = spark.table("words").agg(sql.coalesce(sql.sum("count"), sql.lit(0))).first()[0]
        batches = sum(progress.numInputRows > 0 for progress in query.recentProgress)
        query.stop()
    writer.join()
    for row in spark.table("words").orderBy(sql.desc("count"), "word").limit(5).collect():
        print(f"{row['word']:8} {row['count']}")
    print(f"{counted} words of {count} sentences, counted in {batches} batches")
    spark.stop()


if __name__ == "__main__":
    with ExitStack() as ends:
        where = sys.argv[2] if len(sys.argv) > 2 else ends.enter_context(LocalCluster(1)).uri
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 100, where)
