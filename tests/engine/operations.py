"""What an operator does to a bookie while peers use it: checkpoints, deletions, garbage collection, read-only mode.

A thread of its own carries the operations out, at their times, one after the other.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from bookie.storage.garbage.collection import Garbage
from bookie.storage.garbage.contracts import Standing
from bookie.storage.garbage.directory import LedgerDirectory
from bookie.storage.garbage.settings import GarbageSettings
from bookie.storage.layout import current
from bookie.storage.ledger_storage import LedgerStorage
from tests.engine.events import Recorder
from tests.engine.plan import Operation

__all__ = ["Ledgers", "Operator"]

NEVER_MS = 1_000_000_000
CYCLE_S = 10.0
"""The longest that the operator waits for a cycle."""
SETTINGS = GarbageSettings(wait_ms=NEVER_MS, delete_share_max=1.0, rate_bytes_per_s=0, metadata_reads_per_s=1_000_000)


class Ledgers:
    """The metadata store: the ledgers that exist."""

    def __init__(self, existing: set[int]) -> None:
        self.existing = existing

    def instance_id(self) -> str:
        return "world"

    def seen(self) -> str | None:
        return self.instance_id()

    def ranges(self) -> Iterator[list[int]]:
        yield sorted(self.existing)

    def standing(self, ledger: int) -> Standing:
        return Standing.OURS if ledger in self.existing else Standing.ABSENT

    @contextmanager
    def replication_lock(self, _ledger: int) -> Iterator[bool]:
        yield True


class Operator:
    """Carries out `operations`. `stop` waits for the one that runs."""

    def __init__(
        self, storage: LedgerStorage, ledgers: Ledgers, recorder: Recorder, operations: tuple[Operation, ...]
    ) -> None:
        self._storage = storage
        self._ledgers = ledgers
        self._recorder = recorder
        self._operations = sorted(operations, key=lambda operation: operation.at_ns)
        self._stopping = threading.Event()
        self.failed: BaseException | None = None
        self._garbage = Garbage(
            SETTINGS,
            [LedgerDirectory(collector, SETTINGS) for collector in storage.collectors()],
            ledgers,
            own_instance=lambda: "world",
            checkpoint=storage.checkpoint,
            log_bytes_max=storage.storage.log_bytes_max,
            times=current(storage.storage.ledger_directories[0]),
        )
        self._thread = threading.Thread(target=self._run, name="operator", daemon=True)

    def start(self) -> None:
        """Start the thread of garbage collection, and that of the operations."""
        self._garbage.start()
        if self._operations:
            self._thread.start()

    def stop(self) -> None:
        """End both threads."""
        self._stopping.set()
        self._garbage.stop()
        if self._operations:
            self._thread.join()

    def _run(self) -> None:
        begun = time.monotonic_ns()
        try:
            for operation in self._operations:
                pause = (begun + operation.at_ns - time.monotonic_ns()) / 1e9
                if self._stopping.wait(max(pause, 0.0)):
                    return
                getattr(self, f"_{operation.kind}")(operation.ledger)
        except BaseException as error:  # noqa: BLE001 - the driver raises it
            self.failed = error

    def _checkpoint(self, _ledger: int) -> None:
        self._storage.checkpoint()

    def _delete(self, ledger: int) -> None:
        self._recorder.delete(ledger)
        self._ledgers.existing.discard(ledger)

    def _collect(self, _ledger: int) -> None:
        """Collect and compact, and record how many logs were compacted since the start."""
        cycle = self._garbage.force()
        self._garbage.wait(cycle, CYCLE_S)
        self._recorder.nemesis("compacted", int(self._garbage.stats()["gc_compacted_log_total"]))

    def _read_only(self, _ledger: int) -> None:
        self._storage.set_read_only(True)

    def _writable(self, _ledger: int) -> None:
        self._storage.set_read_only(False)
