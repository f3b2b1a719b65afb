"""`python -m perf.fairness`: latency of a client with one request at a time beside clients that flood the bookie.

Starts a bookie on an empty directory and writes ledgers that stay in its caches. The victim is measured in turn alone
and beside 1, 8 and 64 flooding connections. Victim, flooders and bookie are separate processes. `--apart` keeps the
bookie on the first CPUs and all clients on the last one, so that the bookie is measured and not the scheduler; all
have a higher priority than other processes, if that is permitted. Prints one JSON object: latencies of the victim in
us and entries per second of the flooders, as medians of the rounds, and ratios to the victim alone.
"""

import contextlib
import json
import os
import statistics
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from perf.load.build import build, build_all
from perf.paired import fresh
from perf.side_by_side.card import ROOT
from perf.side_by_side.drive import CLIENT_CPU, Result, bkload, drop_pages, kept_apart
from perf.side_by_side.servers import OurBookie

DATA = ROOT / "build/perf/fairness"
LEDGER, FLOODED, ADDED, COLD = 1, 2, 1000, 3
ENTRIES = 50_000
COLD_MIB = 1024
PROCESSES_MOST = 8
WARMUP_S = 0.5
FIRST, LATER = -15, 10
"""Niceness of bookie and victim, and of flooders relative to that, so that the scheduler prefers the victim."""
DEPTH = {"read": 20_000, "small": 20_000, "add": 5_000, "batch": 16, "cold": 4_000}
"""Outstanding requests of each flooding connection."""
KINDS = tuple(DEPTH)


def flood_words(kind: str, process: int, connections: int) -> list[str]:
    """Return the arguments of one flooding process. `small` reads entries that do not exist."""
    depth = DEPTH[kind] * connections
    words = ["--connections", str(connections), "--outstanding", str(depth), "--size", "1024"]
    ledger = ["--first-ledger", str(FLOODED), "--entries", str(ENTRIES)]
    if kind == "add":
        return ["add", *words, "--first-ledger", str(ADDED + process * PROCESSES_MOST), "--ledgers", str(connections)]
    if kind == "batch":
        return ["batch", *words, "--batch", "100", *ledger]
    if kind == "small":
        return ["read", *words, *ledger, "--first-entry", str(ENTRIES)]
    if kind == "cold":
        entries = COLD_MIB * 1024
        return ["read", *words, "--random", "--first-ledger", str(COLD), "--entries", str(entries)]
    return ["read", *words, *ledger]


@contextlib.contextmanager
def flooders(bookie: OurBookie, kind: str, protocol: int, count: int, seconds: float) -> Iterator[list[Result]]:
    """Run flooding connections while the block runs; then append their results to the list that is yielded."""
    processes = min(count, PROCESSES_MOST)
    running = []
    for at in range(processes):
        command = ["nice", "-n", str(LATER), str(build("bkload")), *flood_words(kind, at, count // processes)]
        command += ["--port", str(bookie.port), "--cpu", str(CLIENT_CPU), "--protocol", str(protocol)]
        command += ["--warmup", str(WARMUP_S), "--seconds", str(seconds)]
        running.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
    floods: list[Result] = []
    try:
        time.sleep(WARMUP_S)
        yield floods
    finally:
        for one in running:
            floods.append(json.loads(one.communicate()[0]))


def victim(bookie: OurBookie, kind: str, protocol: int, seconds: float, ledger: int) -> dict[str, float]:
    """Measure one request at a time: an add, or a read from memory or (`cold`) from the disk."""
    options: dict[str, Any] = {"size": 1024, "outstanding": 1, "protocol": protocol, "seconds": seconds}
    if kind == "add":
        done = bkload("add", port=bookie.port, first_ledger=ledger, **options)
    elif kind == "cold":
        options |= {"first_ledger": COLD, "entries": COLD_MIB * 1024, "seed": ledger}
        done = bkload("read", "--random", port=bookie.port, **options)
    else:
        done = bkload("read", port=bookie.port, first_ledger=LEDGER, entries=ENTRIES, **options)
    return {name: done["latency_us"][name] for name in ("p50", "p99", "p999", "max")}


def measure(bookie: OurBookie, plan: dict[str, Any], counts: list[int]) -> dict[str, Any]:
    """Measure the victim alone and beside each number of flooders, in turn; return medians."""
    seen: dict[int, list[dict[str, float]]] = {count: [] for count in [0, *counts]}
    seconds, protocol = plan["seconds"], plan["protocol"]
    for turn in range(plan["rounds"]):
        for count in [0, *counts]:
            ledger = 10_000 + 100 * turn + count
            floods: list[Result] = []
            with contextlib.ExitStack() as beside:
                if count:
                    floods = beside.enter_context(flooders(bookie, plan["flood"], protocol, count, seconds + WARMUP_S))
                found = victim(bookie, plan["victim"], protocol, seconds, ledger)
            found["flood_per_s"] = sum(one["entries_s"] for one in floods)
            seen[count].append(found)
    medians = {
        count: {name: round(statistics.median(one[name] for one in found), 1) for name in found[0]}
        for count, found in seen.items()
    }
    alone = medians[0]
    ratios = {
        count: {name: round(found[name] / alone[name], 2) for name in ("p50", "p99")}
        for count, found in medians.items()
        if count
    }
    return {"plan": plan, "ratios": ratios, "medians": medians, "seen": seen}


def fill(bookie: OurBookie, *, cold: bool) -> None:
    """Write the ledgers to be read."""
    for ledger in (LEDGER, FLOODED):
        bkload("fill", port=bookie.port, size=1024, outstanding=1000, first_ledger=ledger, entries=ENTRIES)
    if cold:
        bkload("fill", port=bookie.port, size=1024, outstanding=1000, first_ledger=COLD, entries=COLD_MIB * 1024)


@click.command()
@click.option("--flood", type=click.Choice(KINDS), default="read", show_default=True, help="What the flooders request.")
@click.option("--victim", type=click.Choice(["read", "add", "cold"]), default="read", show_default=True)
@click.option("--protocol", type=click.IntRange(2, 3), default=2, show_default=True)
@click.option("--rounds", default=3, show_default=True, help="Number of rounds.")
@click.option("--seconds", default=2.0, show_default=True, help="Duration of each measurement.")
@click.option("--loops", default=1, show_default=True, help="Number of I/O loops; with 1, all connections share it.")
@click.option("--apart/--anywhere", default=True, show_default=True, help="Keep bookie and clients on separate CPUs.")
@click.option("--counts", default="1,8,64", show_default=True, help="Numbers of flooding connections.")
@click.option("--directory", default=DATA, show_default=True, type=click.Path(path_type=Path))
def main(*, loops: int, apart: bool, counts: str, directory: Path, **plan: Any) -> None:
    """Measure one request at a time beside floods."""
    build_all()
    with contextlib.suppress(PermissionError):
        os.nice(FIRST)
    plan |= {"loops": loops, "apart": apart}
    cold = "cold" in (plan["flood"], plan["victim"])
    with fresh(directory, {"serverNumIOThreads": str(loops)}) as bookie, contextlib.ExitStack() as stack:
        fill(bookie, cold=cold)
        if cold:
            bookie.stop()
            drop_pages(bookie.entry_logs())
            bookie.start({"serverNumIOThreads": str(loops)})
        if apart:
            stack.enter_context(kept_apart(bookie.pid))
        found = measure(bookie, plan, [int(count) for count in counts.split(",")])
    print(json.dumps(found))


if __name__ == "__main__":
    main()
