"""What is stored in this bookie, for planes: its entry logs, and the ledgers and entries in its caches and logs.

Any thread, one at a time; what is read comes from the caches or by way of the read pool, as for a client. Nothing here
holds up the data path, and no answer is larger than it was asked to be.
"""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from typing_extensions import Buffer

from bookie._fast.entrylog.map import LogLedgers, read_map, scan_ledgers
from bookie._fast.store import quarantine
from bookie._fast.store.direct import Direct, LedgerState, Refused
from bookie._fast.store.entry_places import Place, entry_places
from bookie._fast.store.entry_ranges import entry_ranges
from bookie._fast.store.quarantine import Quarantine
from bookie._fast.store.storage import StorageEngine
from bookie.errors import (
    BookKeeperError,
    DataUnknown,
    IllegalOperation,
    NoSuchEntry,
    NoSuchLedger,
    UnauthorizedAccess,
)
from bookie.storage.layout import HEX_NAME, current
from bookie.storage.ledger_storage import LedgerStorage

__all__ = ["LedgerState", "LogFile", "LogLedgers", "Place", "Stored"]


REPAIR_S = 30.0
"""So long a repaired entry may wait for room or for its journal."""
FULL_PAUSE_S = 0.02
RECORD_BYTES_MAX = 256 << 20


class LogFile(NamedTuple):
    """An entry log; `directory` counts ledger directories, and ids are those of one directory."""

    directory: int
    log_id: int
    path: Path
    bytes: int


class Stored:
    """Of an open storage. `close` before that closes; idempotent."""

    def __init__(self, storage: LedgerStorage) -> None:
        self._storage = storage
        self._lock = threading.Lock()
        # Guarded by _lock:
        self._direct: Direct | None = None
        self._closed = False

    def close(self) -> None:
        """From now on everything but files is refused with IllegalOperation."""
        with self._lock:
            self._closed = True
            if self._direct is not None:
                self._direct.close()
                self._direct = None

    def logs(self) -> list[LogFile]:
        """All entry logs, by directory and id."""
        found = []
        for position, directory in enumerate(self._storage.storage.ledger_directories):
            for path in current(directory).iterdir():
                name = HEX_NAME.match(path.name)
                if name and name[2] == "log":
                    found.append(LogFile(position, int(name[1], 16), path, path.stat().st_size))
        return sorted(found)

    def log_ledgers(self, directory: int, log_id: int) -> LogLedgers:
        """The ledgers of one log and their bytes in it: from its map, or by a scan. NoSuchEntry where it is gone."""
        directories = self._storage.storage.ledger_directories
        if not 0 <= directory < len(directories):
            raise NoSuchEntry(f"there is no ledger directory {directory}: they count from 0 to {len(directories) - 1}")
        path = current(directories[directory]) / f"{log_id:x}.log"
        try:
            return read_map(path) or scan_ledgers(path)
        except FileNotFoundError:
            raise NoSuchEntry(f"{path}: no such entry log; it may have been compacted, list them anew") from None
        except ValueError as error:
            raise DataUnknown(f"{path}: {error}; look at it with bkadmin localconsistencycheck") from None

    def ledger(self, ledger: int) -> LedgerState:
        """What is known here of a ledger. NoSuchLedger."""
        with self._lock:
            found = self._open().ledger(ledger)
        if found is None:
            raise NoSuchLedger(f"ledger {ledger} is not known to this bookie")
        return found

    def ranges(self, ledger: int) -> list[tuple[int, int]]:
        """(first, last) of each maximal range of stored entries. NoSuchLedger."""
        with self._lock:
            found = entry_ranges(self._stores(), ledger)
        if found is None:
            raise NoSuchLedger(f"ledger {ledger} is not known to this bookie")
        return found

    def directory_of(self, ledger: int) -> int:
        """The number of the ledger directory that a ledger lives in."""
        return ledger % len(self._storage.storage.ledger_directories)

    def places(self, ledger: int, first: int, most: int) -> list[Place]:
        """Where up to `most` entries from `first` on lie; what is not flushed yet has no place."""
        with self._lock:
            return entry_places(self._stores(), ledger, first, most)

    def read(self, ledger: int, first: int, count: int, size: int) -> list[bytes]:
        """Up to `count` entries in a row from `first` on, `size` bytes of them, at least one; as stored, with digest.

        NoSuchLedger, NoSuchEntry, DataUnknown when the disk does not give them.
        """
        with self._lock:
            held = self._open().read(ledger, first, count=count, size=size)
            try:
                if held.status != "OK":
                    raise _refusal(held.status, ledger, first)
                return held.entries()
            finally:
                held.release()

    def write_close(self, ledger: int, key: bytes) -> None:
        """Say that nothing more will be written to it. UnauthorizedAccess for another ledger's key."""
        with self._lock:
            try:
                self._open().write_close(ledger, key)
            except Refused as error:
                raise _refusal(error.status, ledger, -1) from None

    # What repair needs.

    def add_again(self, stored: Buffer, key: bytes) -> int:
        """Store a good copy in place of a bad one, as a recovery does, also of a ledger in quarantine: the journal
        group to wait for. BookKeeperError when the bookie does not take it now.
        """
        deadline = time.monotonic() + REPAIR_S
        while True:
            with self._lock:
                try:
                    return self._open().add(stored, key, repair=True)
                except Refused as error:
                    ids = memoryview(stored)[:16]
                    ledger, entry = int.from_bytes(ids[:8], "big"), int.from_bytes(ids[8:], "big")
                    if error.status not in ("FULL", "TOO_MANY_REQUESTS") or time.monotonic() > deadline:
                        raise _refusal(error.status, ledger, entry) from None
            time.sleep(FULL_PAUSE_S)

    def await_durable(self, ledger: int, group: int) -> None:
        """Wait for a journal group of `add_again`. DataUnknown when that takes too long."""
        with self._lock:
            if group and not self._open().wait(ledger, group, REPAIR_S):
                raise DataUnknown(f"ledger {ledger}: its journal did not take a repaired entry; look at its disk")

    def record_at(self, directory: str, log_id: int, offset: int) -> bytes | None:
        """The entry of a record in a log of this bookie; None where there is none."""
        try:
            with (Path(directory) / f"{log_id:x}.log").open("rb") as file:
                file.seek(offset)
                size = int.from_bytes(file.read(4), "big")
                entry = file.read(size) if size <= RECORD_BYTES_MAX else b""
        except OSError:
            return None
        return entry if len(entry) == size and size else None

    def quarantined(self) -> list[Quarantine]:
        """Ledgers in quarantine, and why."""
        with self._lock:
            self._stores()
            return self._storage.quarantined()

    def quarantine(self, ledger: int, reason: str) -> bool:
        """Put a ledger there, see `bookie._fast.store.quarantine`; whether that is new."""
        with self._lock:
            return quarantine.put(self._stores(), ledger, reason)

    def lift(self, ledger: int) -> bool:
        """Let a ledger out; False: it was not in quarantine."""
        with self._lock:
            return quarantine.lift(self._stores(), ledger)

    def follow_failed_reads(self, listener: Callable[[str, int, int], None]) -> None:
        """Tell of the directory, ledger and entry of reads that fail, from now on."""
        self._storage.on_failed_read = listener

    def _stores(self) -> StorageEngine:
        """For whoever holds the lock."""
        stores = self._storage.stores
        if self._closed or stores is None:
            raise IllegalOperation("this bookie is starting or stopping; ask again when it runs")
        return stores

    def _open(self) -> Direct:
        """For whoever holds the lock."""
        if self._direct is None:
            self._direct = Direct(self._stores(), self._storage.pool)
        return self._direct


def _refusal(status: str, ledger: int, entry: int) -> BookKeeperError:
    """What the stores' answer means to an operator."""
    if status == "NO_LEDGER":
        return NoSuchLedger(f"ledger {ledger} is not known to this bookie")
    if status == "NO_ENTRY":
        return NoSuchEntry(f"entry {entry} of ledger {ledger} is not stored in this bookie")
    if status == "UNAUTHORIZED":
        return UnauthorizedAccess(f"ledger {ledger} has another password here than its metadata says")
    return DataUnknown(f"ledger {ledger}, entry {entry}: the bookie answers {status}; look at its log and disks")
