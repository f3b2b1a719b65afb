"""The engine of one bookie: the storage and the data port with all of their threads, without planes and metadata."""

from pathlib import Path

from bookie.server.configuration.settings import NetworkSettings
from bookie.server.data_port import DataPort
from bookie.server.disks.dirty import DirtyMarker, Run
from bookie.storage.ledger_storage import LedgerStorage
from bookie.storage.settings import JournalSettings, StorageSettings
from tests.engine.plan import Plan
from tests.engine.sealed import server_contexts


class Engine:
    """Opens the directories below `root` and serves until `stop`."""

    def __init__(self, plan: Plan, root: Path, boot: int) -> None:
        frame = plan.network["frame_bytes_max"]
        self.storage = LedgerStorage(
            StorageSettings(
                ledger_directories=tuple(root / f"ledgers-{i}" for i in range(plan.ledger_directories)),
                frame_bytes_max=frame,
                **plan.storage,
            ),
            JournalSettings(directories=tuple(root / f"journal-{i}" for i in range(plan.journals)), **plan.journal),
        )
        self.network = NetworkSettings(**plan.network)
        tls = server_contexts(root.parent / "tls") if plan.sealed else None
        self.port = DataPort(self.storage, self.network, tls=tls)
        journal = self.storage.journal
        run = Run(write_data=journal.write_data, sync_data=journal.sync_data, boot=f"boot {boot}")
        self.flushed = False
        self._dirty = DirtyMarker(self.storage.storage.ledger_directories, run)

    def start(self) -> None:
        """Replay the journals, start the threads, and listen, in the order of `bookie.server.lifecycle`.

        Afterwards `flushed` says whether the entry logs and the index hold everything that was replayed.
        """
        for directory in self.storage.storage.ledger_directories:
            directory.mkdir(exist_ok=True)
        self.storage.open(distrusted=bool(self._dirty.lost()), same_boot=self._dirty.same_boot())
        self.flushed = self.storage.flushed
        self._dirty.set()
        self.storage.start()
        self.port.start()

    def stop(self) -> None:
        """Answer what was asked, flush, and end every thread."""
        self.port.stop(1.0)
        self.storage.stop()
        self.port.close()
        if self.storage.flushed:
            self._dirty.clear()
        elif self.storage.journaled:
            self._dirty.settle()
