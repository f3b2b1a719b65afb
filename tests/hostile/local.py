"""A bookie inside the test process: real directories, journals, threads and sockets, but no registration.

The test owns it. Small caches and a tiny read ring make the paths of a full bookie the usual ones.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bookie._fast.base.file import Files
from bookie.auth.provider import ServerProvider
from bookie.server.configuration.settings import NetworkSettings, TlsSettings
from bookie.server.data_port import DataPort
from bookie.server.tls.contexts import TlsContexts
from bookie.storage.ledger_storage import LedgerStorage
from bookie.storage.settings import MIB, JournalSettings, StorageSettings
from tests.fixtures.faults import go_on
from tests.hostile.peer import Peer

KIB = 1 << 10
NETWORK: dict[str, Any] = {"host": "127.0.0.1", "port": 0, "io_threads": 2, "connections_per_address_max": 0}
"""All peers of a test come from one address."""
STORAGE: dict[str, Any] = {
    "write_cache_bytes": 8 * MIB,
    "read_cache_bytes": 256 * KIB,
    "read_segment_bytes": 128 * KIB,
    "readahead_entries": 50,
    "readahead_bytes": 16 * KIB,
    "read_threads": 4,
    "log_bytes_max": 4 * MIB,
    "index_map_bytes": 1 << 30,
    "keep_flushed": False,
    "throttle_ms_max": 300,
}
JOURNAL: dict[str, Any] = {
    "file_bytes_max": 8 * MIB,
    "prealloc_bytes": 1 * MIB,
    "buffer_bytes": 4 * MIB,
    "backups_max": 0,
}
STOP_S = 60.0


@dataclass(frozen=True)
class LocalBookie:
    """The two parts of a bookie, and its address."""

    storage: LedgerStorage
    port: DataPort
    address: tuple[str, int]

    def peer(self, **options: Any) -> Peer:
        """Open a new connection."""
        return Peer(self.address, **options)

    def stat(self, name: str) -> float:
        """Return a counter of either part."""
        return {**self.storage.stats(), **self.port.stats()}[name]

    def until(self, name: str, reached: Callable[[float], bool]) -> None:
        """Wait until a counter satisfies the condition. Raises AssertionError if it never does."""
        deadline = time.monotonic() + STOP_S
        while not reached(self.stat(name)):
            assert time.monotonic() < deadline, f"{name} stays at {self.stat(name)}"


@contextmanager
def local_bookie(
    directory: Path,
    *,
    files: Files | None = None,
    provider: ServerProvider | None = None,
    tls: TlsSettings | None = None,
    journals: tuple[Path, ...] = (),
    **settings: Any,
) -> Iterator[LocalBookie]:
    """Serve on `directory` until the end of the context; `settings` go to the part that has them.

    `journals` are the directories of journals, if it is not the one in `directory`.
    """
    network, storage, journal = dict(NETWORK), dict(STORAGE), dict(JOURNAL)
    for name, value in settings.items():
        (owner,) = [
            part
            for part, known in ((network, NetworkSettings), (storage, StorageSettings), (journal, JournalSettings))
            if name in known.__dataclass_fields__ and (name != "frame_bytes_max" or known is NetworkSettings)
        ]
        owner[name] = value
    ledgers = StorageSettings(**{"ledger_directories": (directory / "ledgers",), **storage})
    journaling = JournalSettings(directories=journals or (directory / "journal",), **journal)
    stored = LedgerStorage(ledgers, journaling, files=files)
    port = DataPort(stored, NetworkSettings(**network), provider, TlsContexts(tls) if tls else None)
    try:
        stored.open()
        stored.start()
        yield LocalBookie(stored, port, port.start())
    finally:
        go_on()
        port.stop(STOP_S)
        stored.stop()
        port.close()
