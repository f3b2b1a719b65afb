"""`python -m perf.index_commit`: CPU time of a batch of runs put into the index, and of its commit alone.

The index lies in /dev/shm, so that only CPU is measured. Each batch puts one run into each of some of the ledgers that
the index has. Prints one line for each size of a batch: the least of three measurements.
"""

import random
import tempfile
import time

from bookie._fast.index.view import Index

SIZES = [100] * 50
CASES = [(10, 10, 200), (1000, 1000, 50), (1000, 100_000, 50), (10_000, 100_000, 10)]
"""Runs of a batch, ledgers of the index, batches."""


def measured(runs: int, ledgers: int, batches: int) -> tuple[float, float]:
    """Return the CPU milliseconds of a batch, and those of its commit."""
    drawn = random.Random(1)
    whole = commits = 0.0
    with tempfile.TemporaryDirectory(dir="/dev/shm") as path:
        index = Index.open(path)
        index.begin()
        for ledger in range(ledgers):
            index.put_run(ledger, 0, 0, 1024, SIZES)
        index.commit()
        for batch in range(1, batches + 1):
            begun = time.process_time()
            index.begin()
            for number, ledger in enumerate(drawn.sample(range(ledgers), runs)):
                index.put_run(ledger, 50 * batch, batch, 1024 + 6000 * number, SIZES)
            put = time.process_time()
            index.commit()
            whole += time.process_time() - begun
            commits += time.process_time() - put
        index.close()
    return whole / batches * 1e3, commits / batches * 1e3


if __name__ == "__main__":
    for case in CASES:
        batch_ms, commit_ms = min(measured(*case) for _ in range(3))
        print(f"{case[0]} runs, {case[1]} ledgers: {batch_ms:.3f} ms, of which the commit takes {commit_ms:.3f} ms")
