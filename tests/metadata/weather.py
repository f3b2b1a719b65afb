"""Clients of a metadata store that change a few ledgers, and a judge of what they were answered. Threads of a test.

Each change writes a number that no other one writes. A version is higher than all before, also those of a deleted
ledger (`etcd`), so that the judge needs no search: it looks at each version, and at what was known before a call began.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from bookie.errors import BookKeeperError, LedgerExists, MetadataVersionConflict, NoSuchLedgerMetadata
from bookie.metadata.driver import MetadataDriver
from bookie.metadata.records.ledger_metadata import LedgerMetadata, Segment

__all__ = ["Call", "Clients", "judge"]

METADATA = LedgerMetadata(ensemble_size=1, write_quorum=1, ack_quorum=1, segments=(Segment(0, ("a:3181",)),))
REFUSED = (LedgerExists, MetadataVersionConflict, NoSuchLedgerMetadata)
NUMBER = "number"


@dataclass(slots=True)
class Call:
    """A call and its outcome: `done`, `refused`, or `unknown`. One that was refused may have had its effect, too: the
    answer to its first attempt may have been lost, and another client may have changed the ledger since.

    `number` is what it wrote or read, and `version` the one that it made or read; -1 of a read means that there was no
    ledger. `expected` is the version that it was to replace.
    """

    what: str
    ledger: int
    begun: float
    number: int = -1
    expected: int = -1
    version: int = -1
    outcome: str = "unknown"
    ended: float = float("inf")


class Clients:
    """Threads that call the drivers until they are ended; `calls` has all calls in the end."""

    def __init__(self, drivers: list[MetadataDriver], ledgers: range, *, threads: int, seed: int) -> None:
        self.calls: list[Call] = []
        self.ids: list[int] = []
        self.marked: dict[int, set[str]] = {ledger: set() for ledger in ledgers}
        self.errors: list[BaseException] = []
        self._ledgers = ledgers
        self._numbers = 0
        self._progress = threading.Condition()
        self._ended = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(driver, Random(f"{seed}/{number}/{at}")), daemon=True)
            for number, driver in enumerate(drivers)
            for at in range(threads)
        ]

    def start(self) -> None:
        """Start the threads."""
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """End the threads after their present calls."""
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def read_all(self, driver: MetadataDriver) -> None:
        """Read every ledger once more, after the end."""
        for ledger in self._ledgers:
            self._read(driver, ledger)

    def wait(self, outcome: str, count: int) -> None:
        """Wait until so many more calls have had this outcome."""
        with self._progress:
            until = self._count(outcome) + count
            assert self._progress.wait_for(lambda: self._count(outcome) >= until or self.errors, 120), "no progress"

    def _count(self, outcome: str) -> int:
        return sum(call.outcome == outcome for call in self.calls if call.ended < float("inf"))

    def _run(self, driver: MetadataDriver, random: Random) -> None:
        kinds = [self._create, self._change, self._change, self._delete, self._read, self._id, self._mark]
        try:
            while not self._ended.is_set():
                random.choice(kinds)(driver, random.choice(self._ledgers))
        except BaseException as error:  # noqa: BLE001 - the test raises it
            self.errors.append(error)

    def _call(self, call: Call, carry_out: Callable[[], Any]) -> Any:
        with self._progress:
            self.calls.append(call)
        result = None
        try:
            result = carry_out()
            outcome = "done"
        except REFUSED:
            outcome = "done" if call.what == "read" else "refused"
        except BookKeeperError:
            outcome = "unknown"
        with self._progress:
            if result is not None and call.what in {"create", "change", "read"}:
                call.version = result.version
                call.number = int(result.value.custom[NUMBER])
            call.outcome, call.ended = outcome, time.monotonic()
            self._progress.notify_all()
        return result

    def _value(self) -> tuple[int, LedgerMetadata]:
        with self._progress:
            self._numbers += 1
            number = self._numbers
        return number, replace(METADATA, custom={NUMBER: b"%d" % number})

    def _read(self, driver: MetadataDriver, ledger: int) -> Any:
        return self._call(Call("read", ledger, time.monotonic()), lambda: driver.ledgers.read(ledger))

    def _create(self, driver: MetadataDriver, ledger: int) -> None:
        number, value = self._value()
        self._call(
            Call("create", ledger, time.monotonic(), number=number), lambda: driver.ledgers.create(ledger, value)
        )

    def _change(self, driver: MetadataDriver, ledger: int) -> None:
        found = self._read(driver, ledger)
        if found is not None:
            number, value = self._value()
            self._call(
                Call("change", ledger, time.monotonic(), number=number, expected=found.version),
                lambda: driver.ledgers.write(ledger, value, found.version),
            )

    def _delete(self, driver: MetadataDriver, ledger: int) -> None:
        found = self._read(driver, ledger)
        if found is not None:
            self._call(
                Call("delete", ledger, time.monotonic(), expected=found.version),
                lambda: driver.ledgers.delete(ledger, found.version),
            )

    def _id(self, driver: MetadataDriver, ledger: int) -> None:
        found = self._call(Call("id", ledger, time.monotonic()), driver.ledgers.new_id)
        if found is not None:
            self.ids.append(found)

    def _mark(self, driver: MetadataDriver, ledger: int) -> None:
        number, _ = self._value()
        call = Call("mark", ledger, time.monotonic())
        self._call(call, lambda: driver.replication.mark(ledger, [f"bookie-{number}:1"], None))
        if call.outcome == "done":
            with self._progress:
                self.marked[ledger].add(f"bookie-{number}:1")


def judge(calls: list[Call]) -> list[str]:
    """Return what a store with linearizable calls cannot have answered."""
    wrong = []
    for ledger in sorted({call.ledger for call in calls}):
        wrong += [f"ledger {ledger}: {text}" for text in _judge_one([one for one in calls if one.ledger == ledger])]
    return wrong


def _judge_one(calls: list[Call]) -> list[str]:
    wrong = []
    writes = {call.number: call for call in calls if call.what in {"create", "change"}}
    numbers: dict[int, int] = {}
    replaced: dict[int, Call] = {}
    for call in calls:
        if call.version >= 0:
            if numbers.setdefault(call.version, call.number) != call.number:
                wrong.append(f"version {call.version} has two values: {call}")
            writer = writes.get(call.number)
            if writer is None or writer.begun > call.ended:
                wrong.append(f"a value that nobody had written: {call}")
            elif writer.version not in {-1, call.version}:
                wrong.append(f"another version than its writer was told: {call} of {writer}")
        if call.outcome == "done" and call.expected >= 0:
            other = replaced.setdefault(call.expected, call)
            if other is not call and not (_may_be_gone(call, other, calls) or _may_be_gone(other, call, calls)):
                wrong.append(f"two calls replaced one version: {call} and {other}")
            if call.what == "change":
                replaced[call.expected] = call
                if call.version <= call.expected:
                    wrong.append(f"a version before the one that it replaced: {call}")
    return wrong + _judge_order(calls, replaced)


def _may_be_gone(delete: Call, other: Call, calls: list[Call]) -> bool:
    """Return whether a delete may have found, when it was repeated, that the ledger was gone.

    Its first answer may have been lost, so that it was told of a success that was another delete's: the other one of
    the same version, or one of a later version.
    """
    if delete.what != "delete":
        return False
    if other.what == "delete":
        return other.begun < delete.ended and delete.begun < other.ended
    return any(
        one is not delete and one.what == "delete" and one.expected >= other.version and one.begun < delete.ended
        for one in calls
    )


def _judge_order(calls: list[Call], replaced: dict[int, Call]) -> list[str]:
    """Return what was answered although a call that had ended before it began had shown something later."""
    wrong = []
    done = sorted((call for call in calls if call.outcome == "done"), key=lambda call: call.ended)
    deletes = [call for call in calls if call.what == "delete"]
    for call in calls:
        if call.outcome != "done" or call.what != "read":
            continue
        known = max((one.version for one in done if one.ended < call.begun), default=-1)
        if call.version < 0:  # a delete after what was known can explain it
            if known >= 0 and not any(one.expected >= known and one.begun < call.ended for one in deletes):
                wrong.append(f"no ledger, though version {known} was known and nobody deleted it: {call}")
        elif call.version < known:
            wrong.append(f"a version before {known}, which was known: {call}")
        elif (gone := replaced.get(call.version)) is not None and gone.ended < call.begun:
            wrong.append(f"a version that had been replaced: {call} by {gone}")
    return wrong
