"""What this bookie stores, for planes: its entry logs, and the ledgers and entries in its caches and logs.

Any thread, one at a time. Reads come from the caches or through the read pool, as for a client. Nothing here delays
the data path, and no result is larger than requested.
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
"""How long a repaired entry may wait for space or for its journal."""
FULL_PAUSE_S = 0.02
RECORD_BYTES_MAX = 256 << 20


class LogFile(NamedTuple):
    """An entry log. `directory` is the number of its ledger directory; log ids are unique within one directory."""

    directory: int
    log_id: int
    path: Path
    bytes: int


class Stored:
    """The contents of an open storage. Call `close`, which is idempotent, before that closes."""

    def __init__(self, storage: LedgerStorage) -> None:
        self._storage = storage
        self._lock = threading.Lock()
        # Guarded by _lock:
        self._direct: Direct | None = None
        self._closed = False

    def close(self) -> None:
        """Refuse everything but files with IllegalOperation from now on."""
        with self._lock:
            self._closed = True
            if self._direct is not None:
                self._direct.close()
                self._direct = None

    def logs(self) -> list[LogFile]:
        """Return all entry logs, by directory and id."""
        found = []
        for position, directory in enumerate(self._storage.storage.ledger_directories):
            for path in current(directory).iterdir():
                name = HEX_NAME.match(path.name)
                if name and name[2] == "log":
                    found.append(LogFile(position, int(name[1], 16), path, path.stat().st_size))
        return sorted(found)

    def log_ledgers(self, directory: int, log_id: int) -> LogLedgers:
        """Return the ledgers of a log and their bytes, from its map or by a scan. Raises NoSuchEntry if it is gone."""
        directories = self._storage.storage.ledger_directories
        if not 0 <= directory < len(directories):
            raise NoSuchEntry(
                f"there is no ledger directory {directory}: they are numbered from 0 to {len(directories) - 1}"
            )
        path = current(directories[directory]) / f"{log_id:x}.log"
        try:
            return read_map(path) or scan_ledgers(path)
        except FileNotFoundError:
            raise NoSuchEntry(
                f"{path}: there is no such entry log; it may have been compacted, so list them again"
            ) from None
        except ValueError as error:
            raise DataUnknown(f"{path}: {error}; check it with bkadmin localconsistencycheck") from None

    def ledger(self, ledger: int) -> LedgerState:
        """Return what is known here about a ledger. Raises NoSuchLedger."""
        with self._lock:
            found = self._open().ledger(ledger)
        if found is None:
            raise NoSuchLedger(f"ledger {ledger} is not known to this bookie")
        return found

    def ranges(self, ledger: int) -> list[tuple[int, int]]:
        """Return (first, last) of each maximal range of stored entries. Raises NoSuchLedger."""
        with self._lock:
            found = entry_ranges(self._stores(), ledger)
        if found is None:
            raise NoSuchLedger(f"ledger {ledger} is not known to this bookie")
        return found

    def directory_of(self, ledger: int) -> int:
        """Return the number of the ledger directory of a ledger."""
        return ledger % len(self._storage.storage.ledger_directories)

    def places(self, ledger: int, first: int, most: int) -> list[Place]:
        """Return the places of up to `most` entries from `first` on; entries that are not flushed yet have none."""
        with self._lock:
            return entry_places(self._stores(), ledger, first, most)

    def read(self, ledger: int, first: int, count: int, size: int) -> list[bytes]:
        """Return up to `count` consecutive entries from `first` on, at most `size` bytes but at least one, as
        stored, with digest.

        Raises NoSuchLedger or NoSuchEntry, and DataUnknown if the disk cannot read them.
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
        """Send a write close for the ledger. Raises UnauthorizedAccess if it has another key."""
        with self._lock:
            try:
                self._open().write_close(ledger, key)
            except Refused as error:
                raise _refusal(error.status, ledger, -1) from None

    # Methods for repair.

    def add_again(self, stored: Buffer, key: bytes) -> int:
        """Store an intact copy in place of a bad one, like a recovery, even of a quarantined ledger. Return the
        journal group to wait for. Raises BookKeeperError if the bookie cannot accept it now.
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
        """Wait for a journal group of `add_again`. Raises DataUnknown if that takes too long."""
        with self._lock:
            if group and not self._open().wait(ledger, group, REPAIR_S):
                raise DataUnknown(
                    f"ledger {ledger}: the journal did not write a repaired entry in time; check its disk"
                )

    def record_at(self, directory: str, log_id: int, offset: int) -> bytes | None:
        """Return the entry of a record in a log of this bookie, or None if there is none."""
        try:
            with (Path(directory) / f"{log_id:x}.log").open("rb") as file:
                file.seek(offset)
                size = int.from_bytes(file.read(4), "big")
                entry = file.read(size) if size <= RECORD_BYTES_MAX else b""
        except OSError:
            return None
        return entry if len(entry) == size and size else None

    def quarantined(self) -> list[Quarantine]:
        """Return the quarantined ledgers, and the reasons."""
        with self._lock:
            self._stores()
            return self._storage.quarantined()

    def quarantine(self, ledger: int, reason: str) -> bool:
        """Quarantine a ledger, see `bookie._fast.store.quarantine`; return whether that is new."""
        with self._lock:
            return quarantine.put(self._stores(), ledger, reason)

    def lift(self, ledger: int) -> bool:
        """Lift the quarantine of a ledger; return False if it was not in quarantine."""
        with self._lock:
            return quarantine.lift(self._stores(), ledger)

    def follow_failed_reads(self, listener: Callable[[str, int, int], None]) -> None:
        """Call `listener` with the directory, ledger and entry of each failed read from now on."""
        self._storage.on_failed_read = listener

    def _stores(self) -> StorageEngine:
        """Return the stores. The caller holds the lock."""
        stores = self._storage.stores
        if self._closed or stores is None:
            raise IllegalOperation("this bookie is starting or stopping; try again when it runs")
        return stores

    def _open(self) -> Direct:
        """Return the Direct, opening it if needed. The caller holds the lock."""
        if self._direct is None:
            self._direct = Direct(self._stores(), self._storage.pool)
        return self._direct


def _refusal(status: str, ledger: int, entry: int) -> BookKeeperError:
    """Translate a status of the stores into an error for operators."""
    if status == "NO_LEDGER":
        return NoSuchLedger(f"ledger {ledger} is not known to this bookie")
    if status == "NO_ENTRY":
        return NoSuchEntry(f"entry {entry} of ledger {ledger} is not stored in this bookie")
    if status == "UNAUTHORIZED":
        return UnauthorizedAccess(f"ledger {ledger} has another password here than in its metadata")
    return DataUnknown(f"ledger {ledger}, entry {entry}: the bookie answered {status}; check its log and its disks")
