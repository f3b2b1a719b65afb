"""A bookie process under a test's control (launcher.py), and random configurations that make many things happen.

A test owns its bookie and history; both stay on disk for the analysis of a failure.
"""

import json
import os
import random
import select
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.fixtures.bookies import BookieProcess
from tests.history.checker import Violation, judge
from tests.history.events import History

__all__ = ["BUSY", "draw_settings", "PlannedBookie", "Refused", "watched"]

BUSY = {
    "adminPort": "-1",
    "dbStorage_maxThrottleTimeMs": "5000",
    "dbStorage_readAheadCacheMaxSizeMb": "4",
    "dbStorage_readCacheSegmentSizeMb": "1",
    "dbStorage_writeCacheMaxSizeMb": "5",
    "diskCheckInterval": "50",
    "flushInterval": "50",
    "flushSizeMb": "1",
    "journalMaxBackups": "0",
    "journalMaxMemorySizeMb": "5",
    "journalPreAllocSizeMB": "1",
    "logLevel": "info",
    "logSizeLimit": str(1 << 20),
    "maxBatchReadSize": str(1 << 19),
    "nettyMaxFrameSizeBytes": str(1000 << 10),
    "numReadWorkerThreads": "2",
    "serverNumIOThreads": "2",
}
"""Small caches, small files and many checkpoints, so that rolls, trims and swaps happen all the time."""

JOURNAL_BYTES = 2 << 20
PATIENCE_S = 60.0


class PlannedBookie(BookieProcess):
    """A bookie with a launcher, which gets `plan`. With `control`, orders can be given while it runs."""

    def __init__(self, directory: Path, settings: dict[str, str], plan: dict[str, Any] | None = None) -> None:
        super().__init__(directory, f"lmdb://{directory}/metadata", {**BUSY, **settings})
        self.plan = {"journal_bytes": JOURNAL_BYTES, **(plan or {})}
        self.control = False
        self.within: Callable[[list[str]], list[str]] = list  # wraps the command to run it somewhere else
        self._orders = -1
        self._answers = -1
        self._said = b""

    def command(self, *options: str) -> list[str]:
        interpreter, *rest = super().command(*options)
        return self.within([interpreter, "-m", "tests.crash.launcher", *rest[2:]])

    def launch(self) -> int:
        self.let_go()
        plan = dict(self.plan)
        if self.control:
            orders, self._orders = os.pipe()
            self._answers, answers_in = os.pipe()
            self._said = b""
            plan["control"] = self.inherited = orders, answers_in
        self.environment["CRASH_PLAN"] = json.dumps(plan)
        try:
            return super().launch()
        finally:
            for fd in self.inherited:
                os.close(fd)
            self.inherited = ()

    def order(self, **what: Any) -> dict[str, Any]:
        """Give an order and wait until it is in force."""
        os.write(self._orders, json.dumps(what).encode() + b"\n")
        return self.heard()

    def heard(self) -> dict[str, Any]:
        """Return the launcher's next message; empty when the process is gone."""
        while b"\n" not in self._said:
            readable, _, _ = select.select([self._answers], [], [], PATIENCE_S)
            assert readable, f"the launcher says nothing:\n{self.log_text()[-2000:]}"
            data = os.read(self._answers, 4096)
            if not data:
                return {}
            self._said += data
        line, _, self._said = self._said.partition(b"\n")
        return dict(json.loads(line))

    def let_go(self) -> None:
        """Close the control descriptors."""
        if self._orders >= 0:
            os.close(self._orders)
            os.close(self._answers)
            self._orders = -1

    def exited(self, within_s: float) -> int | None:
        """Return the exit code of a process that should end by itself, or None if it does not in time."""
        assert self.process
        end = os.pidfd_open(self.pid)
        try:
            if not select.select([end], [], [], within_s)[0]:
                return None
        finally:
            os.close(end)
        return self.wait()


def draw_settings(rng: random.Random, directory: Path) -> tuple[dict[str, str], dict[str, Any]]:
    """Return random settings and a launcher's plan for one life of a bookie."""
    journals, ledgers = rng.choice(((1, 1), (1, 1), (2, 2), (1, 2), (2, 1)))
    settings = {
        "dbStorage_writeCacheMaxSizeMb": rng.choice(("5", "8", "16")),
        "flushInterval": rng.choice(("1", "20", "200", "10000")),
        "journalAlignmentSize": rng.choice(("512", "4096", "4096")),
        "journalDirectories": ",".join(f"{directory}/journal{n}" for n in range(journals)),
        "journalFlushWhenQueueEmpty": rng.choice(("true", "true", "false")),
        "journalMaxBackups": rng.choice(("0", "0", "2")),
        "journalReuseFiles": rng.choice(("true", "true", "false")),
        "journalSyncData": rng.choice(("true", "true", "true", "false")),
        "ledgerDirectories": ",".join(f"{directory}/ledgers{n}" for n in range(ledgers)),
        "entryLogPerLedgerEnabled": rng.choice(("false", "false", "true")),
        "maximumNumberOfActiveEntryLogs": rng.choice(("1", "3", "500")),
    }
    return settings, {"journal_bytes": rng.choice((1, 2, 4)) << 20}


class Refused(Exception):
    """The bookie does not start any more; the judge has been told."""


@contextmanager
def watched(bookie: PlannedBookie, history: History) -> Iterator[list[Violation]]:
    """Ends the bookie in any case; then the list holds the judge's findings. The history stays on disk."""
    found: list[Violation] = []
    try:
        yield found
    except Refused as refusal:
        print(refusal)
    finally:
        bookie.kill()
        bookie.let_go()
        found += judge(history.events)
        history.save(bookie.directory / "history.jsonl")
