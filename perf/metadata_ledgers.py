"""Time and memory of a metadata store with many ledgers: creating, listing and reading their metadata.

    python -m perf.metadata_ledgers etcd://127.0.0.1:2379/perf --ledgers 1000000

A line of JSON is printed for each step. The store must be empty; a cluster is created in it. All ledgers are listed by
garbage collection, the auditor and `bkadmin listledgers`; the auditor reads the metadata of each, too.
"""

import json
import resource
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import click

from bookie.metadata import open_driver
from bookie.metadata.records.ledger_metadata import DigestType, LedgerMetadata, LedgerState, Segment

METADATA = LedgerMetadata(
    ensemble_size=3,
    write_quorum=3,
    ack_quorum=2,
    segments=(Segment(0, ("10.0.0.1:3181", "10.0.0.2:3181", "10.0.0.3:3181")),),
    state=LedgerState.CLOSED,
    length=1 << 20,
    last_entry=1023,
    digest_type=DigestType.CRC32C,
)


def measured(step: str, count: int, call: Callable[[], object]) -> None:
    """Print what a step took, and the most memory that this process has had until then."""
    begun, cpu = time.monotonic(), time.process_time()
    call()
    seconds, cpu_s = time.monotonic() - begun, time.process_time() - cpu
    rss_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    row = {"step": step, "ledgers": count, "seconds": round(seconds, 2), "cpu_s": round(cpu_s, 2)}
    row |= {"rate": round(count / seconds), "rss_mib": rss_mib}
    print(json.dumps(row), flush=True)


@click.command()
@click.argument("uri")
@click.option("--ledgers", type=click.IntRange(1), default=100_000, show_default=True)
@click.option("--threads", type=click.IntRange(1, 256), default=16, show_default=True)
@click.option(
    "--reads", type=click.IntRange(1), default=20_000, show_default=True, help="How many are read one by one."
)
def main(uri: str, ledgers: int, threads: int, reads: int) -> None:
    """Measure the store at URI."""
    driver = open_driver(uri, session_timeout_ms=60_000)
    driver.start()
    try:
        driver.cluster.initialize()
        with ThreadPoolExecutor(threads) as pool:

            def all_of(call: Callable[[int], object], ids: range) -> Callable[[], object]:
                def run() -> None:
                    for _ in pool.map(call, ids, chunksize=1):
                        pass

                return run

            for first in range(0, ledgers, 100_000):  # a pool's queue of all calls would be what is measured
                some = range(first, min(first + 100_000, ledgers))
                measured("create", len(some), all_of(lambda ledger: driver.ledgers.create(ledger, METADATA), some))
            counts: list[int] = []
            measured("list", ledgers, lambda: counts.append(sum(map(len, driver.ledgers.ranges()))))
            if counts != [ledgers]:
                sys.exit(f"listed {counts[0]} of {ledgers} ledgers")
            step = max(1, ledgers // reads)
            some = range(0, ledgers, step)
            measured(f"read, {threads} threads", len(some), all_of(driver.ledgers.read, some))
            few = range(0, ledgers, max(1, ledgers // 2000))
            measured("read, one by one", len(few), lambda: [driver.ledgers.read(one) for one in few])
    finally:
        driver.stop()


if __name__ == "__main__":
    main()
