"""`python -m perf.spark_worker [MIB]`: the CPU time of a Spark worker's own part, without Spark, step by step.

One process reads four ledgers of 1 KiB entries from a bookie's write cache: only the batches as they are received and
verified; each of them packed at once; as Arrow blocks; and as blocks that are written to a socket, which another
process drains, as Spark's worker does. For comparison, the same blocks are packed, built and written again and again
from memory. Prints medians of five rounds, in user and system CPU seconds per GiB.
"""

import os
import resource
import socket
import statistics
import sys
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from bookie.client import EntryBatch
from bookie.local import LocalCluster
from bookie.spark.clients import client_of
from bookie.spark.source.blocks import Blocks
from bookie.spark.source.ranges import Range
from bookie.spark.source.reading import read_ranges
from bookie.spark.source.settings import SourceSettings
from perf.spark_source import LEDGERS, SIZE, fill

ROUNDS = 5
BLOCK_MIB = 4


def drained() -> Any:
    """Return a file whose bytes another process receives."""
    here, there = socket.socketpair()
    if os.fork() == 0:
        there.close()
        buffer = bytearray(1 << 20)
        while here.recv_into(buffer):
            pass
        os._exit(0)
    here.close()
    return there.makefile("wb", 1 << 16)


def measured(name: str, mib: int, run: Callable[[], object]) -> None:
    """Print what it costs to process `mib` MiB."""
    costs = []
    for number in range(ROUNDS + 1):
        before = resource.getrusage(resource.RUSAGE_SELF)
        run()
        after = resource.getrusage(resource.RUSAGE_SELF)
        if number:  # the first round warms up
            costs.append((after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime))
    user, system = (statistics.median(one[k] for one in costs) / mib * 1024 for k in (0, 1))
    print(f"{name:24} {user:5.2f} user {system:5.2f} system {user + system:5.2f} s/GiB", flush=True)


def main() -> None:
    """Measure and print."""
    mib = int(sys.argv[1]) if len(sys.argv) > 1 else 128
    rows = (mib << 20) // SIZE // LEDGERS
    out = drained()
    caches: dict[str, Any] = {"dbStorage_writeCacheMaxSizeMb": 3 * mib, "serverMaxOutputMemorySizeMb": 64}
    with LocalCluster(1, journalSyncData="false", **caches) as cluster:
        ids = fill(cluster.uri, rows * LEDGERS)
        settings = SourceSettings.of({"metadataServiceUri": cluster.uri, "ledgers": ",".join(map(str, ids))})
        ranges = tuple(Range(ledger, 0, rows, rows * SIZE, False) for ledger in ids)
        client = client_of(settings.cluster)

        def read(entries_of: Callable[[EntryBatch], int]) -> None:
            for ledger in ids:
                with (
                    client.open_ledger(ledger) as reader,
                    reader.batches(
                        0, rows - 1, max_count=settings.batch_entries, max_size=settings.batch_bytes
                    ) as found,
                ):
                    assert sum(map(entries_of, found)) == rows

        def write(blocks: Any) -> None:
            writer: Any = None
            for block in blocks:
                writer = writer or pa.RecordBatchStreamWriter(out, block.schema)
                writer.write_batch(block)
            out.flush()

        def again(step: Callable[[], object]) -> None:
            for _ in range(mib // BLOCK_MIB):
                step()

        measured("batches", mib, lambda: read(len))
        measured("batches, each packed", mib, lambda: read(lambda batch: len(EntryBatch.packed([batch])[1]) - 1))
        measured("blocks", mib, lambda: sum(block.num_rows for block in read_ranges(settings, ranges)))
        measured("blocks, written", mib, lambda: write(read_ranges(settings, ranges)))
        with client.open_ledger(ids[0]) as reader:
            held = [reader.batch_read(at, SIZE - 32) for at in range(0, BLOCK_MIB * (SIZE - 32), SIZE - 32)]
            built = Blocks(settings, ids[0], reader.metadata)
        block = next(built.of(iter(held)))
        measured("pack from memory", mib, lambda: again(lambda: EntryBatch.packed(held)))
        measured("build from memory", mib, lambda: again(lambda: next(built.of(iter(held)))))
        measured("write from memory", mib, lambda: write([block] * (mib // BLOCK_MIB)))
    out.close()


if __name__ == "__main__":
    main()
