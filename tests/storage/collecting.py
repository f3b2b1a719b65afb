"""A bookie's storage on one directory with small logs, a garbage collector that tests drive step by step, and a model
of its contents.
"""

from pathlib import Path

from bookie._fast.store.gc.collector import Collected, DirectoryCollector
from tests.reference.storage import Ledger, Stores, entry
from tests.storage.opened import MIB, Opened, check_index

KEY = b"k" * 20
KIB = 1 << 10


class Collecting:
    """Adds, deletes, takes checkpoints and compacts; `check` compares everything that is served with the model."""

    def __init__(self, root: Path, **settings: object) -> None:
        self.root = root
        self.settings = {"log_bytes_max": 8 * KIB, **settings}
        self.model = Stores()
        self.open()

    def open(self) -> None:
        """Open the directory and replay what it holds."""
        self.one = Opened(self.root, **self.settings)  # type: ignore[arg-type]
        self.collector: DirectoryCollector = self.one.storage.collectors()[0]
        self.directory = Path(self.collector.directory)

    def add(self, ledger: int, ids: range, mark: bytes = b"", size: int = 100) -> None:
        """Add entries and make them durable."""
        for at in ids:
            data = entry(ledger, at, payload=mark + bytes(size))
            self.one.direct.add(data, KEY, recovery=True)
            self.model.add(data, KEY, recovery=True)
        assert self.one.direct.commit()

    def delete(self, *ledgers: int) -> int:
        """Delete ledgers as garbage collection does, after a checkpoint."""
        self.one.checkpoint()
        known = self.collector.delete_ledgers(ledgers)
        for ledger in ledgers:
            self.model.delete(ledger)
        return known

    def closed(self) -> list[int]:
        """Return the logs that may be collected."""
        return self.collector.closed_logs().ids.tolist()  # type: ignore[no-any-return]

    def cycle(self) -> list[Collected]:
        """Unlink the dead logs, and compact all other closed logs."""
        closed, use = self.collector.closed_logs(), self.collector.live_bytes()
        live = dict(zip(use.ids.tolist(), use.live.tolist(), strict=True))
        return [
            self.collector.compact(log_id) if live.get(log_id) else self.collector.unlink_log(log_id)
            for log_id in closed.ids.tolist()
        ]

    def restart(self, *, crash: bool = False) -> None:
        """Stop cleanly or, with `crash`, without a checkpoint, and start again; every log is closed then."""
        if crash:
            assert self.one.direct.commit()
            self.one.crash()
        else:
            self.one.stop()
        self.open()

    def check(self) -> None:
        """Check that every ledger and entry of the model is served, and nothing else."""
        assert self.collector.ledger_ids().tolist() == sorted(self.model.ledgers)
        for ledger, known in self.model.ledgers.items():
            self.check_ledger(ledger, known)

    def check_ledger(self, ledger: int, known: Ledger) -> None:
        """Read each entry once, singly and in batches."""
        state = self.one.direct.ledger(ledger)
        assert state is not None
        assert (state.key, state.fenced) == (known.key, known.fenced)
        for at in range(-1, max(known.entries, default=0) + 2):
            held = self.one.direct.read(ledger, at, count=10, size=MIB)
            assert (held.status, held.entries()) == self.model.read(ledger, at, 10, MIB), (ledger, at)
            held.release()

    def live_in_index(self) -> int:
        """Return what the model expects the index to hold, after a checkpoint."""
        return sum(4 + len(data) for known in self.model.ledgers.values() for data in known.entries.values())

    def stop(self) -> None:
        """Stop cleanly and check what is on the disk."""
        self.one.stop()
        check_index(self.one.ledger_dirs, self.model)
