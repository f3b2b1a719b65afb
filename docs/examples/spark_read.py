"""Write a ledger, and read it in Spark as a query and as a stream. Needs `pip install 'bookie[spark]'`.

python docs/examples/spark_read.py grpc://127.0.0.1:3182
"""

import sys
import tempfile

from pyspark.sql import SparkSession

from bookie.client import BookKeeper

uri = sys.argv[1]
with (
    BookKeeper(uri) as bk,
    bk.create_ledger(ensemble_size=1, write_quorum_size=1, ack_quorum_size=1, password=b"") as ledger,
):
    for number in range(1000):
        ledger.append_async(b"event %d" % number)

settings = {"metadataServiceUri": uri, "ledgers": str(ledger.id), "startingOffsets": "earliest"}
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()

frame = spark.read.format("bookkeeper").options(**settings).load()
print(frame.count(), "entries")
print(*[row.text for row in frame.selectExpr("decode(value, 'utf-8') text").limit(3).collect()], sep=", ")

with tempfile.TemporaryDirectory() as checkpoint:
    stream = spark.readStream.format("bookkeeper").options(**settings).load()
    query = (
        stream.groupBy("ledger_id")
        .count()
        .writeStream.outputMode("complete")
        .format("memory")
        .queryName("counts")
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
print("streamed:", spark.table("counts").first()["count"])
spark.stop()
