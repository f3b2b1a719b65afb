"""Write and read a hundred thousand entries with numpy: `python docs/examples/bulk.py [host:port]`.

No Python object is created for an entry: payloads are sent from one array, and batches return one buffer with offsets.
"""

import sys
import time

import numpy as np
from numpy.typing import NDArray

from bookie.client import Channel, Digest

ENTRIES = 100_000


def main(address: str) -> None:
    """Append a column of numbers, one per entry, then read the numbers and print their sum."""
    host, _, port = address.rpartition(":")
    digest = Digest.of()
    ledger = time.time_ns()
    numbers = np.arange(ENTRIES, dtype=np.int64)
    offsets = np.arange(ENTRIES + 1, dtype=np.int64) * numbers.itemsize

    with Channel.connect(host, int(port)) as channel:
        stream = channel.add_batch(ledger, 0, numbers.view(np.uint8).data, offsets, digest=digest)
        print(f"{stream.confirmed:,} entries are durable, p99 {stream.latency_ms(0.99):.1f} ms")

        total = 0
        for batch in channel.batch_read_all(ledger, 0, ENTRIES - 1):
            batch.verify(digest)
            starts, _ = batch.payload_spans(digest)
            records: NDArray[np.uint8] = np.frombuffer(batch.buffer, dtype=np.uint8)
            places = starts[:, None] + np.arange(numbers.itemsize)
            total += int(records[places].view(np.int64).sum())
        print(f"sum {total:,}, expected {int(numbers.sum()):,}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:3181")
