"""`python -m perf.beside`: latency of adds beside the background work of a bookie.

The bookie runs on an empty directory with default settings. Ledgers are written and a third of them deleted, so that a
forced major compaction lasts longer than the measurement; adds at a fixed rate are measured alone and beside it. Then
the same adds are measured with and without an access log, on a bookie that is restarted for each. Prints one JSON
object; `ratio` is the p99 relative to that of adds alone, from medians.
"""

import json
import shutil
import statistics
import time
from pathlib import Path
from typing import Any

import click

from bookie.admin_port.channel import AdminAccess, open_channel
from bookie.metadata import open_driver
from bookie.metadata.driver import MetadataDriver
from bookie.metadata.records.ledger_metadata import LedgerMetadata, Segment
from bookie.pb import garbage_service_pb2 as pb
from bookie.pb.garbage_service_pb2_grpc import GarbageCollectionStub
from perf.load.build import build_all
from perf.paired import plan_options
from perf.side_by_side.card import ROOT
from perf.side_by_side.drive import bkload
from perf.side_by_side.servers import OurBookie, free_port

DATA = ROOT / "build/perf/beside"
SIZE = 1024
LEDGERS = 30
FIRST = 1000
"""The first ledger of the timed adds; each measurement uses ten."""
WAIT_S = 60.0
LOOK_S = 0.02


def register(driver: MetadataDriver, ledgers: range, bookie: str) -> None:
    """Create the metadata of ledgers on this bookie."""
    metadata = LedgerMetadata(ensemble_size=1, write_quorum=1, ack_quorum=1, segments=(Segment(0, (bookie,)),))
    for ledger in ledgers:
        driver.ledgers.create(ledger, metadata)


class Timed:
    """Adds at one rate, into new ledgers each time."""

    def __init__(self, bookie: OurBookie, rate: int, seconds: float) -> None:
        self._bookie = bookie
        self._load: dict[str, Any] = {"size": SIZE, "outstanding": 1000, "ledgers": 10, "warmup": 1}
        self._load |= {"rate": rate, "seconds": seconds}
        self.times = 0

    def adds(self) -> dict[str, float]:
        """Return the latencies in us, and the bookie's CPU seconds per million adds."""
        first = FIRST + 10 * self.times
        self.times += 1
        done = bkload("add", port=self._bookie.port, pid=self._bookie.pid, first_ledger=first, **self._load)
        latency = {name: done["latency_us"][name] for name in ("p50", "p99", "p999")}
        return {**latency, "cpu_s_per_million": done["server"]["cpu_s_per_million"]}


def beside_compaction(timed: Timed, stub: GarbageCollectionStub) -> tuple[dict[str, float], int]:
    """Measure adds during a compaction; return the result and the number of logs compacted meanwhile.

    Raises:
        RuntimeError: the compaction ended before the measurement.
    """
    before = progress(stub)
    seen = timed.adds()
    after = progress(stub)
    if not after.compacting:
        raise RuntimeError("the compaction ended before the measurement: use a larger --mib")
    return seen, int(after.counters["gc_compacted_log_total"] - before.counters["gc_compacted_log_total"])


def progress(stub: GarbageCollectionStub) -> pb.GarbageStatus:
    status: pb.GarbageStatus = stub.GetStatus(pb.GetGarbageStatusRequest(), timeout=10)
    return status


def force(stub: GarbageCollectionStub) -> None:
    """Force a major compaction, which is running when this returns."""
    stub.Force(pb.ForceGarbageRequest(major=True), timeout=10)
    deadline = time.monotonic() + WAIT_S
    while not progress(stub).compacting:
        if time.monotonic() > deadline:
            raise RuntimeError(f"no compaction began within {WAIT_S:.0f} s: {progress(stub)}")
        time.sleep(LOOK_S)


def measure_compaction(directory: Path, mib: int, pairs: int, rate: int, seconds: float) -> dict[str, Any]:
    """Measure adds alone and beside compaction, in turn; a compaction is forced for each pair."""
    bookie = OurBookie(directory)
    admin = free_port()
    bookie.start({"adminPort": str(admin), "gcDeleteShareMax": "1", "logSizeLimit": str(64 << 20)})
    timed = Timed(bookie, rate, seconds)
    found: dict[str, list[dict[str, float]]] = {"alone": [], "compaction": []}
    moved = 0
    driver = open_driver(f"grpc://127.0.0.1:{admin}")
    driver.start()
    try:
        with open_channel(f"127.0.0.1:{admin}", AdminAccess()) as channel:
            stub = GarbageCollectionStub(channel)  # type: ignore[no-untyped-call]  # generated
            register(driver, range(FIRST, FIRST + 20 * (pairs + 1)), f"127.0.0.1:{bookie.port}")
            timed.adds()  # creates the journals
            for pair in range(pairs):
                ledgers = range(pair * LEDGERS, (pair + 1) * LEDGERS)
                register(driver, ledgers, f"127.0.0.1:{bookie.port}")
                bkload("fill", port=bookie.port, size=SIZE, outstanding=1000, first_ledger=ledgers.start,
                       ledgers=LEDGERS, entries=(mib << 10) // LEDGERS)  # fmt: skip
                for ledger in ledgers[: LEDGERS // 3]:
                    driver.ledgers.delete(ledger)
                found["alone"].append(timed.adds())
                force(stub)
                beside, logs = beside_compaction(timed, stub)
                found["compaction"].append(beside)
                moved += logs
    finally:
        driver.stop()
        bookie.stop()
        shutil.rmtree(directory, ignore_errors=True)
    return {**verdict(found, "alone"), "compacted_logs": moved, "seen": found}


def measure_access_log(directory: Path, pairs: int, rate: int, seconds: float) -> dict[str, Any]:
    """Measure adds without an access log, with one at the default sample rate, and with one of all requests."""
    kept = {"accessLogFile": f"{directory}/access.csv"}
    kinds = {"none": {}, "default": kept, "everything": {**kept, "accessLogSampleRate": "1"}}
    found: dict[str, list[dict[str, float]]] = {name: [] for name in kinds}
    for _ in range(pairs):
        for name, settings in kinds.items():
            bookie = OurBookie(directory)
            bookie.start(settings)
            try:
                found[name].append(Timed(bookie, rate, seconds).adds())
            finally:
                bookie.stop()
                shutil.rmtree(directory, ignore_errors=True)
    return {**verdict(found, "none"), "seen": found}


def verdict(found: dict[str, list[dict[str, float]]], base: str) -> dict[str, Any]:
    """Return the medians of p99 and CPU, and the ratio of each p99 to the base."""
    p99 = {name: statistics.median(one["p99"] for one in seen) for name, seen in found.items()}
    cpu = {name: statistics.median(one["cpu_s_per_million"] for one in seen) for name, seen in found.items()}
    ratio = {name: round(p99[name] / p99[base], 2) for name in p99 if name != base}
    return {"ratio": ratio, "p99_us": p99, "cpu_s_per_million": cpu}


@click.command(help=__doc__)
@click.option("--mib", default=600, show_default=True, help="MiB of logs to compact, for each pair.")
@plan_options(DATA, pairs=2, seconds=5.0)
@click.option("--only", type=click.Choice(["compaction", "access log"]), help="Measure only this.")
def main(*, mib: int, pairs: int, seconds: float, rate: int, only: str | None, directory: Path) -> None:
    """Measure adds beside compaction, and beside an access log."""
    build_all()
    shutil.rmtree(directory, ignore_errors=True)
    found = {}
    if only != "access log":
        found["compaction"] = measure_compaction(directory, mib, pairs, rate, seconds)
    if only != "compaction":
        found["access log"] = measure_access_log(directory, pairs, rate, seconds)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
