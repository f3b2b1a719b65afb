"""`python -m perf.spark_offline`: the rate of scanning entry logs from files, compared with a plain read of the same
bytes.

Writes one log of 1 KiB entries and reads it until it is in the page cache. Then, in turn over several rounds: a plain
sequential read into one buffer; and the scan as Arrow record batches without validation, with headers, with digests,
and with digests and payloads; all in one process on one core. With --spark, also a count of the same rows in a session
on local[1]. Prints one JSON object with medians in GB/s of the file.
"""

import json
import os
import statistics
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np

from bookie.client.entries.digest import Digest, DigestType
from bookie.spark.formats.files import DataFile
from bookie.spark.formats.scanning import Plan, log_batches
from bookie.spark.schemas import ENTRYLOG
from perf.side_by_side.card import ROOT, machine_card

DATA = ROOT / "build/perf/offline"
PIECE = 4 << 20
HEADER = 1024


def written(entries: int, size: int) -> Path:
    """Write a log of `entries` entries of `size` stored bytes each, with CRC32C digests."""
    DATA.mkdir(parents=True, exist_ok=True)
    path = DATA / "7.log"
    digest = Digest.of(DigestType.CRC32C, b"")
    payload = np.random.default_rng(1).bytes(size - digest.overhead)
    with path.open("wb") as file:
        file.write(struct.pack(">4siqi", b"BKLO", 1, 0, 0).ljust(HEADER, b"\0"))
        for k in range(entries):
            stored = digest.seal(7, k, payload, lac=k - 1, length=(k + 1) * len(payload))
            file.write(struct.pack(">i", len(stored)) + stored)
    return path


def plain(path: Path) -> int:
    """Read a file; return the number of bytes."""
    buffer = bytearray(PIECE)
    size = 0
    with path.open("rb", buffering=0) as file:
        while got := file.readinto(buffer):
            size += got
    return size


def scanned(path: Path, validate: str, *, values: bool) -> int:
    """Scan a file; return the number of rows."""
    file = DataFile(str(path), 7, path.stat().st_size, newest=True)
    plan = Plan(validate, "fail", values, None, "auto", b"")
    return sum(len(batch) for batch in log_batches(file, plan, ENTRYLOG))


def rates_in_spark(path: Path, rounds: int) -> dict[str, list[float]]:
    """Return the seconds of counting all rows in a Spark session."""
    from pyspark.sql import SparkSession  # noqa: PLC0415

    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    session = builder.config("spark.python.unix.domain.socket.enabled", "true").getOrCreate()
    found: dict[str, list[float]] = {}
    try:
        for name, values in (("spark_digest", "false"), ("spark_digest_values", "true")):
            frame = session.read.format("bookkeeper-entrylog").options(validate="digest", includeValue=values)
            for _ in range(rounds + 1):
                start = time.perf_counter()
                frame.load(str(path)).selectExpr("count(entry_size)").collect()
                found.setdefault(name, []).append(time.perf_counter() - start)
            del found[name][0]
    finally:
        session.stop()
    return found


@click.command()
@click.option("--entries", default=500_000, show_default=True)
@click.option("--size", default=1024, show_default=True, help="Stored size of an entry in bytes.")
@click.option("--rounds", default=5, show_default=True)
@click.option("--spark", is_flag=True, help="Also measure a Spark session.")
def main(entries: int, size: int, rounds: int, *, spark: bool) -> None:
    """Run the measurement described above."""
    path = written(entries, size)
    ways: dict[str, Callable[[], int]] = {
        "plain_read": lambda: plain(path),
        "scan": lambda: scanned(path, "none", values=False),
        "scan_header": lambda: scanned(path, "header", values=False),
        "scan_digest": lambda: scanned(path, "digest", values=False),
        "scan_digest_values": lambda: scanned(path, "digest", values=True),
    }
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    seconds: dict[str, list[float]] = {}
    for turn in range(rounds + 1):
        for name, way in ways.items():
            start = time.perf_counter()
            way()
            if turn:
                seconds.setdefault(name, []).append(time.perf_counter() - start)
    os.sched_setaffinity(0, range(os.cpu_count() or 1))
    if spark:
        seconds |= rates_in_spark(path, rounds)
    bytes_ = path.stat().st_size
    path.unlink()
    rates = {name: round(bytes_ / statistics.median(each) / 1e9, 3) for name, each in seconds.items()}
    result: dict[str, Any] = {
        "gb_per_s": rates,
        "million_rows_per_s": {name: round(rate * 1e3 / (size + 4), 3) for name, rate in rates.items()},
        "digest_of_plain_read": round(rates["scan_digest"] / rates["plain_read"], 3),
        "entries": entries,
        "size": size,
        "machine": machine_card(DATA),
    }
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
