"""Read the messages of a Pulsar topic in Spark from the bookies. Needs `pip install 'bookie[spark]'`.

python docs/examples/pulsar_topic.py zk+hierarchical://127.0.0.1:2181/ledgers public/default/persistent/orders

An entry of the ledgers is a message or a batch of messages, preceded by Pulsar's metadata. Compressed and encrypted
messages, chunks and the markers of transactions are errors in this program.
"""

import struct
import sys
from collections.abc import Iterator

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

BROKER_METADATA, CHECKSUM = 0x0E02, 0x0E01
COMPRESSION, IN_BATCH, ENCRYPTION, MARKER, CHUNKS = 8, 11, 13, 20, 26  # fields of MessageMetadata
PAYLOAD_SIZE = 3  # of SingleMessageMetadata


def varint(data: bytes, at: int) -> tuple[int, int]:
    """Decode a varint; return its value and where it ends."""
    value = shift = 0
    while data[at] & 0x80:
        value |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
    return value | data[at] << shift, at + 1


def fields(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield the fields of a Protocol Buffers message: the number, and the value or, for bytes, the length."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        value, kind = 0, tag & 7
        if kind in {0, 2}:
            value, at = varint(data, at)
        at += {0: 0, 1: 8, 2: value, 5: 4}[kind]
        yield tag >> 3, value


def sized(data: bytes) -> tuple[dict[int, int], bytes]:
    """Decode a message with a length in front of it; return its fields and the bytes after it."""
    (length,) = struct.unpack_from(">I", data)
    return dict(fields(data[4 : 4 + length])), data[4 + length :]


def messages(entry: bytes) -> list[bytes]:
    """Return the payloads of the messages in one entry."""
    data = bytes(entry)
    if data[:2] == BROKER_METADATA.to_bytes(2):
        _, data = sized(data[2:])
    if data[:2] == CHECKSUM.to_bytes(2):
        data = data[6:]
    metadata, data = sized(data)
    if metadata.get(COMPRESSION) or {ENCRYPTION, MARKER, CHUNKS} & metadata.keys():
        raise ValueError(f"compressed, encrypted, a marker or a chunk: fields {sorted(metadata)}")
    if IN_BATCH not in metadata:
        return [data]
    found = []
    for _ in range(metadata[IN_BATCH]):
        one, data = sized(data)
        found.append(data[: one[PAYLOAD_SIZE]])
        data = data[one[PAYLOAD_SIZE] :]
    return found


if __name__ == "__main__":
    uri, topic = sys.argv[1:]
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    entries = (
        spark.read.format("bookkeeper")
        .option("metadataServiceUri", uri)
        .option("ledgerFilter", f"pulsar/managed-ledger={topic},!pulsar/cursor")
        .load()
    )
    payloads = f.posexplode(f.udf(messages, "array<binary>", useArrow=False)("value")).alias("number", "message")
    found = entries.select("ledger_id", "entry_id", payloads).orderBy("ledger_id", "entry_id", "number").collect()
    print(len(found), "messages")
    for row in (*found[:1], *found[-1:]):
        print(row.ledger_id, row.entry_id, row.number, bytes(row.message))
    spark.stop()
