"""`python -m perf.cold_steps`: cold reads by readers that take every n-th entry, as if they rotated over replicas.

One reader of one ledger, or 200 readers at positions of their own in 50 ledgers, ask for single entries by steps of 1,
2, 3 or 7, ten requests at a time, from the beginning of the ledgers or from their middle. For each row the bookie was
restarted, in a process of its own, with its files dropped from the page cache. For both bookies a row has entries per
second and the bytes that the process has read for each byte of the entries that it served; ours also says how many
disk reads there were, and which share of the entries came from the read cache. Prints one JSON object per row.
"""

import contextlib
import json
import re
import shutil
import socket
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from urllib.error import URLError

import click

from perf.side_by_side.card import ROOT
from perf.side_by_side.drive import bkload, drop_pages
from perf.side_by_side.java_bookie import JavaServer
from perf.side_by_side.servers import OurBookie, Server, free_port
from perf.side_by_side.sessions import fresh, io_bytes
from perf.thrash import ENTRY_BYTES, SIZE, answered, requests

DATA = ROOT / "build/perf/cold_steps"
LEDGERS, POSITIONS, ENTRIES, TURN = 50, 4, 4000, 10
COUNTS, STEPS = (1, 200), (1, 2, 3, 7)
ONE_ENTRIES = 3000
"""Entries that the one reader takes, if the ledger has as many by its step."""


def readers(count: int, *, middle: bool) -> list[tuple[int, int]]:
    """Return ledger and first entry of each reader. 200 readers begin in four quarters of each of 50 ledgers."""
    begin = ENTRIES // 2 + 1 if middle else 0
    if count == 1:
        return [(0, begin)]
    quarter = (ENTRIES - begin) // POSITIONS
    return [(ledger, begin + at * quarter) for at in range(POSITIONS) for ledger in range(LEDGERS)]


def consume(port: int, who: list[tuple[int, int]], step: int, each: int) -> float:
    """Let each reader take `each` entries, ten at a time, in turn; return the seconds."""
    started = time.monotonic()
    with closing(socket.create_connection(("127.0.0.1", port), timeout=60)) as sock:
        for turn in range(0, each, TURN):
            for ledger, first in who:
                ids = range(first + turn * step, first + (turn + TURN) * step, step)
                sock.sendall(b"".join(requests(ledger, entry, 1) for entry in ids))
                answered(sock, TURN)
    return time.monotonic() - started


def counters(http_port: int) -> dict[str, float]:
    """Return the sums of our bookie's counters that a row needs."""
    while True:
        with contextlib.suppress(URLError), urllib.request.urlopen(f"http://127.0.0.1:{http_port}/metrics") as page:
            text = page.read().decode()
            break
        time.sleep(0.01)  # the HTTP port opens shortly after the data port
    names = {"disk_reads": "pybookie_disk_reads_total", "hits": "bookie_read_cache_hits"}
    return {
        key: sum(float(value) for value in re.findall(rf"^{name}(?:{{[^}}]*}})? (\S+)$", text, re.MULTILINE))
        for key, name in names.items()
    }


def measure(
    server: Server, http_port: int | None, policy: str, counts: Sequence[int], steps: Sequence[int]
) -> Iterator[dict[str, object]]:
    """Fill the bookie, and yield a row for each kind of reader."""
    keys = {"dbStorage_readAheadPolicy": policy}
    if http_port is not None:
        keys |= {"httpServerEnabled": "true", "httpServerPort": str(http_port)}
    server.start(keys)
    bkload("fill", port=server.port, size=SIZE, outstanding=1000, ledgers=LEDGERS, entries=ENTRIES)
    for count in counts:
        for middle in (False, True):
            for step in steps:
                who = readers(count, middle=middle)
                room = (ENTRIES - who[0][1]) // (POSITIONS if count > 1 else 1)
                each = min(room // step, ONE_ENTRIES) // TURN * TURN
                server.stop()
                drop_pages(server.entry_logs())
                server.start(keys)
                before = io_bytes(server.pid, "rchar")
                seconds = consume(server.port, who, step, each)
                served = each * len(who)
                row: dict[str, object] = {
                    "readers": count, "from": "middle" if middle else "0", "step": step,
                    "entries_per_second": round(served / seconds),
                    "read_per_served": round((io_bytes(server.pid, "rchar") - before) / (served * ENTRY_BYTES), 2),
                }  # fmt: skip
                if http_port is not None:
                    seen = counters(http_port)
                    row |= {"disk_reads": int(seen["disk_reads"]), "hits": round(seen["hits"] / served, 3)}
                yield row


@click.command()
@click.option("--subject", type=click.Choice(["ours", "java"]), default="ours", show_default=True)
@click.option("--policy", type=click.Choice(["forward", "always", "off"]), default="forward", show_default=True)
@click.option("--readers", "counts", multiple=True, type=int, default=COUNTS, show_default=True)
@click.option("--step", "steps", multiple=True, type=int, default=STEPS, show_default=True)
@click.option("--directory", default=DATA, show_default=True, type=click.Path(path_type=Path, resolve_path=True))
def main(*, subject: str, policy: str, counts: tuple[int, ...], steps: tuple[int, ...], directory: Path) -> None:
    """Measure one bookie."""
    http_port = free_port() if subject == "ours" else None
    server: Server = OurBookie(fresh(directory)) if subject == "ours" else JavaServer(fresh(directory))
    try:
        for row in measure(server, http_port, policy, counts, steps):
            print(json.dumps({"subject": subject, **row}), flush=True)
    finally:
        server.stop()
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
