"""`python -m bookie.client.demo`: write entries to a bookie, read them back in batches, and verify digests and
payloads.

It uses one channel to one bookie, and prints a table (or JSON) of rates and latencies. The exit code is 0 only if
every entry came back as it was written. Payloads are computed from entry id and size, so `--check` can verify a
ledger later.
"""

import json
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray
from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from bookie.client import Channel, Digest, DigestType, StoredBatch
from bookie.errors import BookieUnavailable, BookKeeperError, DigestMismatch
from bookie.terminal.output import rounded

SLICE = 4096
"""The number of entries that are made and passed to the stream at a time."""
BATCH_BYTES_MAX = 1 << 20
BATCHES_IN_FLIGHT = 4
PROBES = 2000
"""The number of reads that are sent one by one to measure their latency."""
RETRY_S = 0.2

Show = Callable[[int], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """The result of one kind of work. Latencies are None where requests overlap, which makes them meaningless."""

    work: str
    entries: int
    seconds: float
    mib_per_s: float
    entries_per_s: float
    p50_ms: float | None = None
    p99_ms: float | None = None
    p999_ms: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Demo:
    """The settings of one run."""

    channel: Channel
    digest: Digest
    ledger: int
    entries: int
    size: int
    outstanding: int
    batch: int

    def payloads(self, first: int, count: int) -> NDArray[np.uint8]:
        """Return the payloads of `count` entries, shape (count, size). Within 256 consecutive entries, all bytes at
        the same place differ.
        """
        ids = np.arange(first, first + count, dtype=np.int64)
        rows = (ids * 37).astype(np.uint8)[:, None] + (np.arange(self.size) * 101).astype(np.uint8)
        rows[:, :8] = ids.astype(">i8").view(np.uint8).reshape(count, 8)[:, : self.size]
        return rows

    def write(self, show: Show) -> Phase:
        """Add all entries through one stream."""
        began = time.perf_counter()
        with self.channel.add_stream(self.ledger, 0, digest=self.digest, outstanding=self.outstanding) as stream:
            for first in range(0, self.entries, SLICE):
                count = min(SLICE, self.entries - first)
                offsets = np.arange(count + 1, dtype=np.int64) * self.size
                stream.append(self.payloads(first, count).ravel().data, offsets)
                show(stream.confirmed)
        show(stream.confirmed)
        p50, p99, p999 = (stream.latency_ms(fraction) for fraction in (0.5, 0.99, 0.999))
        work = f"add, {self.outstanding} outstanding"
        return self._phase(work, self.entries, began, p50_ms=p50, p99_ms=p99, p999_ms=p999)

    def read(self, show: Show) -> Phase:
        """Read all entries in batches and check each one. Raises DigestMismatch for the first that is not as it was
        written.
        """
        began = time.perf_counter()
        batches = self.channel.batch_read_all(
            self.ledger,
            0,
            self.entries - 1,
            max_count=self.batch,
            max_size=BATCH_BYTES_MAX,
            in_flight=BATCHES_IN_FLIGHT,
        )
        for batch in batches:
            self.check(batch)
            show(batch.end)
        return self._phase(f"batch read, {BATCHES_IN_FLIGHT} in flight", self.entries, began)

    def check(self, batch: StoredBatch) -> None:
        """Check every digest, then every payload byte."""
        batch.verify(self.digest)
        starts, ends = batch.payload_spans(self.digest)
        odd = np.flatnonzero(ends - starts != self.size)
        if not len(odd):
            records = np.frombuffer(batch.buffer, dtype=np.uint8).reshape(len(batch), -1)
            same = (
                records[:, -self.size :] == self.payloads(batch.first, len(batch)) if self.size else records[:, :0] == 0
            )
            odd = np.flatnonzero(~same.all(axis=1))
        if len(odd):
            raise DigestMismatch(
                f"ledger {self.ledger}, entry {batch.first + int(odd[0])}: the payload is not as it was written;"
                " was the ledger written by this command with the same --size?"
            )

    def probe(self, work: str, count: int, request: Callable[[int], int]) -> Phase:
        """Call `request(entry)` for entries all over the ledger, one after the other. It returns how many entries
        it read.
        """
        rounds = min(PROBES, self.entries)
        places = np.linspace(0, max(self.entries - count, 0), rounds).astype(np.int64).tolist()
        took = np.empty(rounds)
        done = 0
        began = time.perf_counter()
        for k, entry in enumerate(places):
            start = time.perf_counter()
            done += request(entry)
            took[k] = time.perf_counter() - start
        p50, p99, p999 = (np.percentile(took, [50, 99, 99.9]) * 1e3).tolist()
        return self._phase(f"{work}, one by one", done, began, p50_ms=p50, p99_ms=p99, p999_ms=p999)

    def _phase(self, work: str, entries: int, began: float, **latencies: float) -> Phase:
        seconds = time.perf_counter() - began
        rate = entries / seconds
        mib = rate * self.size / (1 << 20)
        return Phase(work=work, entries=entries, seconds=seconds, mib_per_s=mib, entries_per_s=rate, **latencies)


def run(demo: Demo, progress: Progress, *, write: bool) -> Iterator[Phase]:
    """Yield the phases one after another."""

    def bar(what: str) -> Show:
        task = progress.add_task(what, total=demo.entries)
        return lambda done: progress.update(task, completed=done)

    if write:
        yield demo.write(bar("writing"))
    yield demo.read(bar("reading back"))
    few = min(100, demo.batch)
    yield demo.probe(f"batch of {few}", few, lambda entry: len(demo.channel.batch_read(demo.ledger, entry, few)))
    yield demo.probe("single", 1, lambda entry: bool(demo.channel.read(demo.ledger, entry)))


def connect(address: str, wait_s: float) -> Channel:
    """Open a channel to `address`, and wait up to `wait_s` seconds for a bookie that is still starting."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        raise click.UsageError(f"--address={address!r} is not host:port; use for example 127.0.0.1:3181")
    deadline = time.monotonic() + wait_s
    while True:
        try:
            return Channel.connect(host.strip("[]"), int(port))
        except BookieUnavailable:
            if time.monotonic() > deadline:
                raise
            time.sleep(RETRY_S)


def report(ledger: int, phases: list[Phase], output: str) -> None:
    """Print the figures. The table omits those for which 80 columns have no room."""
    if output == "json":
        click.echo(json.dumps({"ledger": ledger, "phases": [asdict(phase) for phase in phases]}, indent=2))
        return
    table = Table(
        title=f"ledger {ledger}: all digests and payloads are correct",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
    )
    table.add_column("work", no_wrap=True)
    for name in ("entries", "seconds", "entries/s", "MiB/s", "p50 ms", "p99 ms"):
        table.add_column(name, justify="right")
    for p in phases:
        latencies = ["" if ms is None else rounded(ms) for ms in (p.p50_ms, p.p99_ms)]
        cells = [f"{p.entries:,}", f"{p.seconds:.2f}", f"{p.entries_per_s:,.0f}", f"{p.mib_per_s:,.0f}", *latencies]
        table.add_row(p.work, *cells)
    Console().print(table)


def again(ledger: int) -> str:
    """Return the command that verifies the same ledger later, for the shell in this directory, without default
    values.
    """
    python, here = Path(sys.executable), Path.cwd()
    words = [str(python.relative_to(here) if python.is_relative_to(here) else python), "-m bookie.client.demo"]
    given = click.get_current_context().params
    for option in main.params:
        value = given[option.name or ""]
        if option.name in {"address", "entries", "size", "digest", "password"} and value != option.default:
            words.append(f"{option.opts[0]} {shlex.quote(str(value))}")
    return " ".join([*words, f"--check {ledger}"])


@click.command()
@click.option("--address", default="127.0.0.1:3181", show_default=True, help="address of the bookie, host:port")
@click.option("--entries", type=click.IntRange(1), default=1_000_000, show_default=True, help="number of entries")
@click.option("--size", type=click.IntRange(0), default=1024, show_default=True, help="payload of each entry in bytes")
@click.option("--outstanding", type=click.IntRange(1), default=10_000, show_default=True, help="unanswered adds")
@click.option("--batch", type=click.IntRange(1), default=1000, show_default=True, help="entries in a batch read")
@click.option("--digest", type=click.Choice([kind.name for kind in DigestType]), default="CRC32C", show_default=True)
@click.option("--password", default="", help="password of the ledger")
@click.option(
    "--check", type=int, metavar="LEDGER", help="only read and verify what an earlier run wrote to this ledger"
)
@click.option(
    "--wait-s", type=float, default=30.0, show_default=True, help="seconds to wait for a bookie that is starting"
)
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
def main(  # noqa: PLR0913  # one parameter an option
    *,
    address: str,
    entries: int,
    size: int,
    outstanding: int,
    batch: int,
    digest: str,
    password: str,
    check: int | None,
    wait_s: float,
    output: str,
) -> None:
    """Write entries, read them back in batches, verify every digest and payload, and print rates and latencies."""
    ledger = time.time_ns() // 1_000_000 if check is None else check
    columns = (TextColumn("{task.description:>12}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    try:
        with connect(address, wait_s) as channel, Progress(*columns, console=Console(stderr=True)) as progress:
            demo = Demo(
                channel=channel,
                digest=Digest.of(DigestType[digest], password.encode()),
                ledger=ledger,
                entries=entries,
                size=size,
                outstanding=outstanding,
                batch=batch,
            )
            phases = list(run(demo, progress, write=check is None))
    except BookKeeperError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(error.exit_code)
    report(ledger, phases, output)
    if output == "table":
        click.echo(f"Next: restart the bookie, then check that no entry was lost:\n  {again(ledger)}")


if __name__ == "__main__":
    main()
