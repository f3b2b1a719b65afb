"""`python -m perf.slow_readers`: a bookie's memory, flushes and readers beside peers that do not read their responses.

Each of `--readers` connections requests cold entries from all over the data, in V2 or V3, in large batches or many
single reads, for more than the socket takes, and reads nothing. Now and then some of them end, with or without a
reset, and others connect. Meanwhile several times the size of the write cache is added, which is only possible while
flushes complete; and one peer reads on and checks every byte. Before that, `--ledgers` ledgers of one entry each are
created.

Prints the peak memory of the process, in total and without file pages, and the sum of the budgets that it logged; the
longest time of a hundred adds; how long flushes waited for readers; and the results of the reader.
"""

import contextlib
import json
import re
import resource
import shutil
import threading
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Self

import click

from bookie.admin_port.channel import AdminAccess, open_channel
from bookie.pb import metrics_service_pb2 as metrics_pb
from bookie.pb.metrics_service_pb2_grpc import MetricsStub
from perf.admin_load import stub_of
from perf.side_by_side.card import ROOT
from tests.fixtures.bookies import BookieProcess
from tests.hostile import v3
from tests.hostile.peer import Peer, add, batch, entry_of, read, records

DATA = ROOT / "build/perf/slow_readers"
MIB = 1 << 20
LEDGERS = 20
ENTRIES = 800
LONG, SHORT = 6000, 200
"""Bytes of an entry: long ones are sent from the cache, short ones are copied."""
BATCHES = 12
BATCH_BYTES = 500_000
SINGLES = 400
TURN = 5
"""After this many hundred adds, a fiftieth of the readers ends, and others connect."""
HOT = 0.3
"""The share of reads by later readers that request what was just added, from the write cache."""
SAMPLE_S = 0.02
EXTRA = 1 << 32
"""The first of the ledgers that are only created."""
TOO_MANY = 106


def payload(ledger: int, entry: int) -> bytes:
    """Return the payload of an entry; a fifth of the ledgers have short ones."""
    return bytes([entry % 251]) * (SHORT if ledger % 5 == 4 else LONG)


def fill(peer: Peer, ledger: int, entries: range) -> None:
    """Add entries.

    Raises:
        RuntimeError: an add was refused.
    """
    peer.send(*(add(ledger, entry, payload(ledger, entry)) for entry in entries))
    if {peer.answer().code for _ in entries} != {0}:
        raise RuntimeError(f"an add to ledger {ledger} was refused")


def make_ledgers(peer: Peer, count: int) -> None:
    """Create ledgers with one entry each."""
    for first in range(0, count, 1000):
        some = range(first, min(count, first + 1000))
        peer.send(*(add(EXTRA + at, 0) for at in some))
        if {peer.answer().code for _ in some} != {0}:
            raise RuntimeError(f"ledger {EXTRA + first} or one after it was refused")


def memory_mib(pid: int, name: str) -> float:
    """Return `VmRSS`, `VmHWM` or `RssAnon` of a process in MiB."""
    status = Path(f"/proc/{pid}/status").read_text()
    (kib,) = re.findall(rf"^{name}:\s+(\d+) kB$", status, re.MULTILINE)
    return int(kib) / 1024


def budget_mib(log: str) -> int:
    """Return the sum of the budgets that the bookie logged at its last start, in MiB."""
    return int(re.findall(r"memory budget.*total_mib=(\d+)", log)[-1])


def metric(bookie: BookieProcess, name: str) -> float:
    """Return the value of a metric, summed over all labels."""
    with open_channel(bookie.admin, AdminAccess()) as channel:
        text = stub_of(MetricsStub, channel).GetText(metrics_pb.GetMetricsRequest()).text
    return sum(float(value) for value in re.findall(rf"^{name}(?:{{.*}})? (\S+)$", text, re.MULTILINE))


class Beside:
    """A thread that reads entries and samples the process's memory until the end of the block."""

    def __init__(self, bookie: BookieProcess) -> None:
        self.answers: Counter[int] = Counter()
        self.peak_mib = 0.0
        self.closed = 0
        self._bookie = bookie
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.is_set():
            try:
                self._read_on()
            except (EOFError, ConnectionResetError):
                self.closed += 1  # for a moment it was the slowest reader

    def _read_on(self) -> None:
        drawn = Random(7 + self.closed)
        with Peer(self._bookie.address) as peer:
            while not self._ended.wait(SAMPLE_S):
                ledger, first = drawn.randrange(LEDGERS), drawn.randrange(ENTRIES)
                answer = peer.ask(batch(ledger, first, size=BATCH_BYTES))
                found = records(answer.body) if answer.code == 0 else []
                if found != [entry_of(ledger, first + at, payload(ledger, first + at)) for at in range(len(found))]:
                    self.answers[-1] += 1
                self.answers[answer.code] += 1
                self.peak_mib = max(self.peak_mib, memory_mib(self._bookie.pid, "RssAnon"))


class SlowReaders:
    """The peers that do not read."""

    def __init__(self, address: tuple[str, int], stack: ExitStack) -> None:
        self._address = address
        self._stack = stack
        self._drawn = Random(11)
        self.peers: list[Peer] = []

    def come(self, count: int, written: int = 0) -> None:
        """Connect more peers, of each kind in turn. `written` is the number of entries in the ledger being added to."""
        for at in range(count):
            peer = self._stack.enter_context(Peer(self._address, receive_bytes=4096))
            batches = at // 2 % 2 == 0
            places = [self._place(written) for _ in range(BATCHES if batches else SINGLES)]
            with contextlib.suppress(ConnectionError):  # it may be closed as the slowest before all is sent
                if at % 2:
                    requests = [v3.batch3(*one, maxSize=BATCH_BYTES) if batches else v3.read3(*one) for one in places]
                    v3.send(peer, *requests)
                else:
                    peer.send(*(batch(*one, size=BATCH_BYTES) if batches else read(*one) for one in places))
            self.peers.append(peer)

    def _place(self, written: int) -> tuple[int, int]:
        if written and self._drawn.random() < HOT:
            return LEDGERS, self._drawn.randrange(max(0, written - ENTRIES), written)
        return self._drawn.randrange(LEDGERS), self._drawn.randrange(ENTRIES)

    def go(self, count: int) -> None:
        """Disconnect peers at random, every other one with a reset."""
        for at in range(count):
            peer = self.peers.pop(self._drawn.randrange(len(self.peers)))
            peer.abort() if at % 2 else peer.close()


def ended(peer: Peer) -> bool:
    """Return whether the bookie has closed the connection, without waiting; what has arrived is discarded."""
    peer.sock.setblocking(False)
    try:
        while peer.sock.recv(1 << 20):
            pass
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True
    return True


def measure(bookie: BookieProcess, readers: int, written_mib: int, ledgers: int = 0) -> dict[str, float]:
    """Run `readers` peers that do not read against a running bookie, and add `written_mib` meanwhile."""
    at_start = memory_mib(bookie.pid, "VmRSS")
    with Peer(bookie.address) as peer:
        make_ledgers(peer, ledgers)
        for ledger in range(LEDGERS):
            for first in range(0, ENTRIES, 100):
                fill(peer, ledger, range(first, first + 100))
    quiet = memory_mib(bookie.pid, "VmRSS")
    longest = 0.0
    with ExitStack() as stack:
        slow = SlowReaders(bookie.address, stack)
        beside = stack.enter_context(Beside(bookie))
        slow.come(readers)
        peer = stack.enter_context(Peer(bookie.address))
        for number in range(written_mib * MIB // (100 * LONG)):
            began = time.monotonic()
            fill(peer, LEDGERS, range(number * 100, number * 100 + 100))
            longest = max(longest, time.monotonic() - began)
            if number % TURN == TURN - 1:
                slow.go(readers // 50)
                slow.come(readers // 50, number * 100)
        left = sum(not ended(one) for one in slow.peers)
    return {
        "readers": readers,
        "readers_left": left,
        "ledgers": ledgers,
        "written_mib": written_mib,
        "longest_100_adds_s": round(longest, 3),
        "flushes": metric(bookie, "pybookie_flush_readers_wait_seconds_count"),
        "flushes_waited_s": round(metric(bookie, "pybookie_flush_readers_wait_seconds_sum"), 4),
        "reads_served": beside.answers[0],
        "reads_refused": beside.answers[TOO_MANY],
        "reads_wrong": beside.answers.total() - beside.answers[0] - beside.answers[TOO_MANY],
        "reader_closed": beside.closed,
        "rss_at_start_mib": round(at_start),
        "rss_before_mib": round(quiet),
        "rss_peak_mib": round(memory_mib(bookie.pid, "VmHWM")),
        "anonymous_peak_mib": round(beside.peak_mib),
        "budget_mib": budget_mib(bookie.log_text()),
    }


@click.command()
@click.option("--readers", default=1000, show_default=True, help="Number of peers that do not read.")
@click.option("--written-mib", default=512, show_default=True, help="MiB to add meanwhile.")
@click.option("--ledgers", default=0, show_default=True, help="Number of ledgers with one entry to create before.")
@click.option("--directory", default=DATA, show_default=True, type=click.Path(path_type=Path))
def main(readers: int, written_mib: int, ledgers: int, directory: Path) -> None:
    """Print one JSON object."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    shutil.rmtree(directory, ignore_errors=True)
    settings = {"logLevel": "info", "dbStorage_maxLedgers": str(ledgers + 1000), "flushInterval": "1000"}
    bookie = BookieProcess(directory, f"lmdb://{directory}/metadata", settings).start()
    try:
        print(json.dumps(measure(bookie, readers, written_mib, ledgers)))
    finally:
        bookie.stop()
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
