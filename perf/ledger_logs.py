"""`python -m perf.ledger_logs`: the cost of one entry log per ledger while many ledgers are opened, written and left.

Starts a bookie on an empty directory and writes `--ledgers` ledgers through the client's channel: with one log for
all, with a log per ledger, and with a log per ledger and an announcement (write close) of each ledger's end. A thread
observes the process from outside. Prints one JSON object per run, then a table for docs/.
"""

import json
import os
import resource
import shutil
import threading
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

import click

from bookie.client import ChannelV3, Digest, Extensions
from bookie.client.wire.extensions import WRITE_CLOSE
from perf.side_by_side.card import ROOT
from perf.side_by_side.servers import OurBookie

DATA = ROOT / "build/perf/ledger-logs"
DIGEST = Digest.of()
PAYLOAD_BYTES = 1000
AT_A_TIME = 200
FLUSH_MS = 2000
LOOK_S = 0.2
BY_LEDGER = {"entryLogPerLedgerEnabled": "true"}
ANNOUNCED = "by ledger, announced"
MODES = {"one for all": {}, "by ledger": BY_LEDGER, ANNOUNCED: BY_LEDGER}


@dataclass
class Seen:
    """Observations of the process: maxima, unless stated otherwise."""

    descriptors: int = 0
    open_logs: int = 0
    """The number of entry logs open for writing."""
    open_now: int = 0
    """The same at the last observation."""
    behind: int = 0
    """How many ids the oldest open log is behind the newest log."""
    resident_mib: int = 0


@dataclass
class Run:
    """One row of the table."""

    mode: str
    ledgers: int
    seconds: float
    """The time to write the ledgers."""
    flushed_seconds: float
    """The time from the first add to the last checkpoint that changed anything."""
    stop_seconds: float
    logs: int
    """The number of logs that remain, closed or not."""
    seen: Seen


class Watch:
    """Observes a process and its ledger directory until told to stop."""

    def __init__(self, pid: int, directory: Path) -> None:
        self.seen = Seen()
        self.newest = 0
        self._proc = Path(f"/proc/{pid}")
        self._directory = directory
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def settle(self) -> float:
        """Wait until checkpoints no longer change anything; return the time of the last change."""
        before, changed = (-1, -1, -1), time.monotonic()
        while time.monotonic() - changed < 3 * FLUSH_MS / 1000:
            now = (len(list(self._directory.iterdir())), self.newest, self.seen.open_now)
            if now != before:
                before, changed = now, time.monotonic()
            time.sleep(LOOK_S)
        return changed

    def _run(self) -> None:
        while not self._over.wait(LOOK_S):
            self._look()

    def _look(self) -> None:
        seen = self.seen
        descriptors = list((self._proc / "fd").iterdir())
        writing = [log for log in map(self._written, descriptors) if log >= 0]
        with suppress(FileNotFoundError):  # nothing has been flushed yet
            self.newest = int((self._directory / "lastId").read_text(), 16)
        pages = int((self._proc / "statm").read_text().split()[1])
        seen.descriptors = max(seen.descriptors, len(descriptors) - sum(map(_kept, descriptors)))
        seen.open_logs = max(seen.open_logs, len(writing))
        seen.open_now = len(writing)
        seen.behind = max(seen.behind, self.newest - min(writing, default=self.newest))
        seen.resident_mib = max(seen.resident_mib, pages * resource.getpagesize() >> 20)

    def _written(self, descriptor: Path) -> int:
        """Return the id of the entry log that a descriptor has open for writing, or -1."""
        try:
            path = descriptor.readlink()
            flags = (self._proc / "fdinfo" / descriptor.name).read_text().split("flags:")[1].split()[0]
        except FileNotFoundError:
            return -1
        mine = path.parent == self._directory and path.suffix == ".log" and int(flags, 8) & os.O_ACCMODE
        return int(path.stem, 16) if mine else -1


def _kept(descriptor: Path) -> bool:
    """Return whether it is a descriptor that the bookie keeps in reserve."""
    try:
        return descriptor.readlink() == Path(os.devnull)
    except FileNotFoundError:
        return False


def write(port: int, ledgers: int, entries: int, *, announce: bool) -> None:
    """Open, write and leave all ledgers of the bookie at this port, `AT_A_TIME` at a time."""
    payload = bytes(PAYLOAD_BYTES)
    with ChannelV3.connect("127.0.0.1", port, timeout_s=60) as channel:
        channel.extensions = Extensions((WRITE_CLOSE,))
        for start in range(0, ledgers, AT_A_TIME):
            some = range(start, min(start + AT_A_TIME, ledgers))
            replies = [
                channel.add_async(
                    ledger, entry, payload, digest=DIGEST, lac=entry - 1, length=PAYLOAD_BYTES * (entry + 1)
                )
                for entry in range(entries)
                for ledger in some
            ]
            for reply in replies:
                reply.result()
            for ledger in some if announce else ():
                channel.write_close(ledger, DIGEST.master_key)


def measure(directory: Path, mode: str, ledgers: int, entries: int) -> Run:
    """Run one bookie on an empty directory and return its row."""
    shutil.rmtree(directory, ignore_errors=True)
    bookie = OurBookie(directory)
    bookie.start({"flushInterval": str(FLUSH_MS), **MODES[mode]})
    try:
        with Watch(bookie.pid, directory / "ledgers" / "current") as watch:
            began = time.monotonic()
            write(bookie.port, ledgers, entries, announce=mode == ANNOUNCED)
            written = time.monotonic() - began
            flushed = watch.settle() - began
        began = time.monotonic()
        bookie.stop()
        stopped = time.monotonic() - began
        logs = len(bookie.entry_logs())
        return Run(mode, ledgers, round(written, 1), round(flushed, 1), round(stopped, 1), logs, watch.seen)
    finally:
        bookie.stop()
        shutil.rmtree(directory, ignore_errors=True)


def row(run: Run) -> str:
    """Return a row of the table in docs/operations.md."""
    seen = run.seen
    times = (run.seconds, run.flushed_seconds)
    logs = (run.logs, seen.open_logs, seen.open_now, seen.behind)
    return "| " + " | ".join(map(str, (run.mode, *times, *logs, seen.descriptors, seen.resident_mib))) + " |"


@click.command()
@click.option("--ledgers", default=50_000, show_default=True, help="Number of ledgers.")
@click.option("--entries", default=2, show_default=True, help="Number of entries per ledger, of 1000 bytes each.")
@click.option(
    "--mode", "modes", multiple=True, type=click.Choice(list(MODES)), help="Run only this mode; may be repeated."
)
@click.option("--directory", default=DATA, show_default=True, type=click.Path(path_type=Path))
def main(ledgers: int, entries: int, modes: tuple[str, ...], directory: Path) -> None:
    """Measure descriptors, open logs and memory while many ledgers come and go."""
    runs = []
    for mode in modes or MODES:
        runs.append(measure(directory, mode, ledgers, entries))
        print(json.dumps(asdict(runs[-1])), flush=True)
    print("| logs | adds, s | flushed, s | logs left | open at most | at the end | oldest, ids back | fds | RSS, MiB |")
    print("|---|---|---|---|---|---|---|---|---|")
    for run in runs:
        print(row(run))


if __name__ == "__main__":
    main()
