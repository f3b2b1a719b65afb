"""`python -m perf.soak.clients ROLE URI LEDGERS`: one client of a soak, in a process of its own that may be killed.

The writer names its ledgers in the file LEDGERS, an id a line. All print a line of JSON a minute with their counts and
latencies, and end with the first wrong entry.
"""

import json
import random
import struct
import sys
import threading
import time
from functools import partial
from pathlib import Path

import numpy as np

from bookie.client import BookKeeper
from bookie.client.entries.verified import EntryBatch
from bookie.errors import NoSuchLedgerMetadata

MINUTE_S = 60.0
TICK_S = 0.02
PAYLOAD = 1024
HEAD = struct.Struct("<qqd")
"""The ledger, the entry and the time when it was added, in front of each payload."""
REST = 9
"""How much longer the reader of older ledgers rests than it reads, so that it never takes most of a core."""
LEDGER_S = (20.0, 60.0)
ROLES = ("writer", "tail", "catch-up")


class Minute:
    """What happened since the last line of output. Its methods may be called from any thread."""

    def __init__(self, role: str) -> None:
        self._role = role
        self._lock = threading.Lock()
        self._seconds: list[float] = []
        self._count = self._bytes = 0
        self._begun = time.monotonic()

    def add(self, seconds: float, count: int = 1, size: int = PAYLOAD) -> None:
        """Count entries, and the time that they took."""
        with self._lock:
            self._seconds.append(seconds)
            self._count += count
            self._bytes += size

    def tell_if_over(self) -> None:
        """Print the line if a minute has passed."""
        passed = time.monotonic() - self._begun
        if passed < MINUTE_S:
            return
        with self._lock:
            seconds, count, size = self._seconds, self._count, self._bytes
            self._seconds, self._count, self._bytes = [], 0, 0
        self._begun = time.monotonic()
        ms = np.array(seconds or [0.0]) * 1000
        p50, p99 = np.percentile(ms, (50, 99))
        figures = {"p50_ms": round(p50, 3), "p99_ms": round(p99, 3), "max_ms": round(float(ms.max()), 3)}
        line = {"role": self._role, "at": time.time(), "entries_s": count / passed, "mb_s": size / passed / 1e6}
        print(json.dumps({**line, **figures}), flush=True)


def checked(batch: EntryBatch, at_once: Minute | None = None) -> None:
    """Exit unless each entry is the one that was added; give the age of each to `at_once`."""
    now = time.time()
    for entry in batch:
        ledger, number, added = HEAD.unpack_from(entry.data)
        if (ledger, number) != (batch.ledger, entry.id):
            sys.exit(f"ledger {batch.ledger}, entry {entry.id}: it holds entry {number} of ledger {ledger}")
        if at_once is not None:
            at_once.add(now - added)


def write(bookkeeper: BookKeeper, ledgers: Path, minute: Minute, rate: float) -> None:
    """Add entries at a rate, in ledgers of less than a minute. A predecessor that was killed has left one open."""
    rest = bytes(PAYLOAD - HEAD.size)
    for number in ids(ledgers)[-1:]:
        bookkeeper.open_ledger(number).close()
    while True:
        with bookkeeper.create_ledger(ensemble_size=3, write_quorum_size=3, ack_quorum_size=2) as ledger:
            with ledgers.open("a") as file:
                file.write(f"{ledger.id}\n")
            end = time.monotonic() + random.uniform(*LEDGER_S)
            due, entry = time.monotonic(), 0
            while (now := time.monotonic()) < end:
                while due < now:
                    add = ledger.append_async(HEAD.pack(ledger.id, entry, time.time()) + rest)
                    add.add_done_callback(partial(_acknowledged, minute, due))
                    due, entry = due + 1 / rate, entry + 1
                minute.tell_if_over()
                time.sleep(TICK_S)


def _acknowledged(minute: Minute, due: float, _add: object) -> None:
    minute.add(time.monotonic() - due)


def follow(bookkeeper: BookKeeper, ledgers: Path, minute: Minute) -> None:
    """Read each new ledger while it is written."""
    done = ids(ledgers)[-1:]
    while True:
        waiting = [one for one in ids(ledgers) if one > (done[-1] if done else -1)]
        if not waiting:
            time.sleep(TICK_S)
        for number in waiting:
            with bookkeeper.open_ledger(number, recovery=False) as ledger:
                for batch in ledger.follow():
                    checked(batch, minute)
                    minute.tell_if_over()
            done = [number]


def catch_up(bookkeeper: BookKeeper, ledgers: Path, minute: Minute) -> None:
    """Read a ledger that is not among the newest from its beginning, one after the other, at an even pace."""
    while True:
        minute.tell_if_over()
        older = ids(ledgers)[:-2]
        if not older:
            time.sleep(1)
            continue
        begun = time.monotonic()
        try:
            with bookkeeper.open_ledger(random.choice(older[-40:]), recovery=False) as ledger:
                at = time.monotonic()
                for batch in ledger.batches(max_count=500):
                    checked(batch)
                    minute.add(time.monotonic() - at, len(batch), batch.nbytes)
                    at = time.monotonic()
        except NoSuchLedgerMetadata:
            continue
        time.sleep(REST * (time.monotonic() - begun))


def ids(ledgers: Path) -> list[int]:
    """Return the ledgers that writers have named so far."""
    return [int(line) for line in ledgers.read_text().splitlines()] if ledgers.exists() else []


def main() -> None:
    """Play the role until the process is killed."""
    role, uri, path, rate = sys.argv[1:]
    minute = Minute(role)
    with BookKeeper(uri) as bookkeeper:
        if role == "writer":
            write(bookkeeper, Path(path), minute, float(rate))
        elif role == "tail":
            follow(bookkeeper, Path(path), minute)
        else:
            catch_up(bookkeeper, Path(path), minute)


if __name__ == "__main__":
    main()
