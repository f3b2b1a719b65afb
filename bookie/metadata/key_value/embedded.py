"""The embedded store: versioned keys in LMDB, owned by one process, which may serve them to others.

Permanent keys are in LMDB, with one synced commit per change. Keys under a session are in memory only: when the owning
process ends, every session ends with it, and nothing stale is left on disk. The first commit that fails for another
reason than a full disk is fatal: LMDB would continue, but its view of the disk could no longer be trusted.

Any thread may call. One lock orders all changes; reads acquire it only for keys under sessions. The sweeper thread
ends sessions that were not kept alive. While this process stalls, nobody can keep a session alive, so all sessions then
begin anew, as in ZooKeeper after a new leader was elected. Watchers are called without the lock, on the thread that
made the change.

A record is `i64 version | i64 created, ms | value`, big-endian. The key `\\0format` has the version of this format.
"""

import fcntl
import os
import re
import secrets
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import lmdb

from bookie._fast.base import fatal
from bookie.durable import PRIVATE_FILE, make_directories, sync_directory
from bookie.errors import IllegalOperation, IncorrectParameter, MetadataStoreError, StartRefused
from bookie.metadata.key_value.keys import (
    KEY_BYTES_MAX,
    NO_SESSION,
    VALUE_BYTES_MAX,
    Item,
    KeyAbsent,
    KeyExists,
    SessionExpired,
    StoreFull,
    VersionConflict,
    Watchers,
)

DATA_FILE = "data.mdb"
MAP_BYTES = 16 << 30
READERS_MAX = 256
DISK_FREE_MIN = 1 << 20
"""If the disk has less free space than this after a commit failed, the reason is a full disk."""
FORMAT_KEY = b"\0format"
FORMAT = b"1"
BEHIND_OUR_OWN = b"\1"  # other keys have no zero byte
RECORD = struct.Struct(">qq")
COUNTER = re.compile(rb"\d{1,19}")
COUNT_MAX = (1 << 63) - 1
SWEEP_S = 0.1
STALL_S = 1.0
"""If the sweeper comes this much later than it should, the whole process has stalled, or the disk held up a change."""


@dataclass(frozen=True, slots=True)
class SessionLimits:
    """How many sessions of other processes there may be, in all and for one owner."""

    in_all: int
    of_one_owner: int

    def check(self, owner: str, owners: list[str]) -> None:
        """Raise StoreFull if one more session would exceed a limit."""
        for key, most, found in (
            ("metadataSessionsMax", self.in_all, len(owners)),
            ("metadataSessionsPerPeerMax", self.of_one_owner, owners.count(owner)),
        ):
            if found >= most:
                whose = "" if key == "metadataSessionsMax" else f" of {owner}"
                raise StoreFull(f"{found} sessions{whose} are open already ({key}={most}); close some, or raise it")


UNLIMITED = SessionLimits(1 << 62, 1 << 62)


@dataclass(slots=True)
class _Session:
    ttl_s: float | None  # None: as long as this process lives
    deadline: float
    owner: str = ""


class EmbeddedStore:
    """A store in a directory. `clock` returns monotonic seconds; `map_bytes` is address space, not disk space.

    Without `create`, a store that does not exist is not created.
    """

    def __init__(
        self,
        directory: str | Path,
        *,
        create: bool = True,
        map_bytes: int = MAP_BYTES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._directory = Path(directory)
        self._create = create
        self._map_bytes = map_bytes
        self._clock = clock
        self._env: lmdb.Environment | None = None
        self._owner_file: int | None = None
        self._own_session = NO_SESSION
        self._stopping = threading.Event()
        self._sweeper = threading.Thread(target=self._sweep, name="metadata-sweep", daemon=True)
        self._watchers = Watchers()
        self._interruption_listeners: list[Callable[[], None]] = []
        self._lock = threading.Lock()
        # The fields below are guarded by _lock.
        self._mortal: dict[str, Item] = {}
        self._sessions: dict[int, _Session] = {}
        self._swept = time.monotonic()
        self._stalls = 0
        self._broken = False

    def start(self) -> None:
        """Open or create the store. Raises StartRefused if another process owns it or it cannot be read, and
        IllegalOperation if it does not exist and must not be created.
        """
        if self._env is not None:
            return
        if not self._create and not (self._directory / DATA_FILE).exists():
            raise IllegalOperation(
                f"lmdb://{self._directory}: no metadata store in this directory; name the directory of one"
            )
        try:
            make_directories(self._directory)
            self._own_directory()
            self._env = lmdb.open(
                str(self._directory), map_size=self._map_bytes, max_readers=READERS_MAX, mode=PRIVATE_FILE
            )
            self._check_format()
            for directory in (self._directory, self._directory.parent):
                sync_directory(directory)
        except (OSError, lmdb.Error) as error:
            self._close()
            raise StartRefused(f"metadata store {self._directory} cannot be opened: {error}") from error
        except StartRefused:
            self._close()
            raise
        self._own_session = self.open_session(None)
        self._swept = time.monotonic()
        self._sweeper.start()

    def stop(self) -> None:
        """End all sessions and close the files; idempotent."""
        self._stopping.set()
        if self._sweeper.is_alive():
            self._sweeper.join()
        for session in list(self._sessions):
            self.close_session(session)
        self._close()

    def hurry(self, patience_s: float) -> None:
        """Do nothing, since no call waits for another process."""

    # Keys

    def get(self, key: str) -> Item | None:
        _check_key(key)
        with self._lock:
            item = self._mortal.get(key)
        return item or self._get_stored(key)

    def put(self, key: str, value: bytes, expected: int | None, session: int = NO_SESSION) -> Item:
        _check_sizes(key, value)
        with self._lock:
            if session != NO_SESSION:
                self._require_session(session)
            found = self._mortal.get(key) or self._get_stored(key)
            _check_expected(key, found, expected)
            if found is None:
                item = Item(value, 0, time.time_ns() // 1_000_000, session)
            else:
                item = Item(value, found.version + 1, found.created_ms, found.session)
            if item.session == NO_SESSION:
                self._commit(key, item)
            else:
                self._mortal[key] = item
        self._watchers.tell([key])
        return item

    def delete(self, key: str, expected: int | None = None) -> None:
        _check_key(key)
        with self._lock:
            found = self._mortal.get(key) or self._get_stored(key)
            if found is None:
                raise KeyAbsent(f"key {key!r} does not exist")
            if expected is not None:
                _check_expected(key, found, expected)
            if self._mortal.pop(key, None) is None:
                self._commit(key, None)
        self._watchers.tell([key])

    def keys(self, prefix: str, after: str = "", limit: int = 1000) -> list[str]:
        with self._lock:
            mortal = [key for key in self._mortal if key.startswith(prefix) and key > after]
        start = prefix.encode()
        found: list[str] = []
        with self._environment().begin() as txn, txn.cursor() as cursor:
            more = cursor.set_range(max(start, after.encode() + b"\0", BEHIND_OUR_OWN))
            while more and cursor.key().startswith(start) and len(found) < limit:
                found.append(cursor.key().decode())
                more = cursor.next()
        return sorted([*found, *mortal], key=str.encode)[:limit]

    def increment(self, key: str) -> int:
        _check_key(key)
        with self._lock:
            found = self._mortal.get(key) or self._get_stored(key)
            value = _count_of(key, found) if found else 0
            version = found.version + 1 if found else 0
            self._commit(key, Item(b"%d" % (value + 1), version, time.time_ns() // 1_000_000))
        self._watchers.tell([key])
        return value

    # Changes

    def watch(self, touched: Callable[[str], None]) -> Callable[[], None]:
        return self._watchers.add(touched)

    # Sessions

    def session(self) -> int:
        return self._own_session

    def on_session_loss(self, listener: Callable[[], None]) -> None:
        """Do nothing, since this process's own session ends only with the process."""

    def on_interruption(self, listener: Callable[[], None]) -> None:
        """Call `listener` on the sweeper thread after this process, or a change of the store, has stalled."""
        self._interruption_listeners.append(listener)

    def open_session(self, ttl_ms: int | None, owner: str = "", limits: SessionLimits = UNLIMITED) -> int:
        """Open a session that ends unless it is kept alive every `ttl_ms`; None means as long as this process lives.

        Raises StoreFull if the limits do not allow another one.
        """
        ttl_s = None if ttl_ms is None else ttl_ms / 1000
        with self._lock:
            limits.check(owner, [one.owner for one in self._sessions.values() if one.ttl_s is not None])
            number = secrets.randbelow((1 << 63) - 1) + 1
            self._sessions[number] = _Session(ttl_s, self._clock() + (ttl_s or 0.0), owner)
        return number

    def keep_alive(self, session: int) -> None:
        """Keep a session alive. Raises SessionExpired."""
        with self._lock:
            found = self._require_session(session)
            found.deadline = self._clock() + (found.ttl_s or 0.0)

    def close_session(self, session: int) -> None:
        """End a session and delete its keys. It is no error if it has ended."""
        with self._lock:
            self._sessions.pop(session, None)
            keys = [key for key, item in self._mortal.items() if item.session == session]
            for key in keys:
                del self._mortal[key]
        self._watchers.tell(keys)

    def expire_sessions(self) -> None:
        """End the sessions whose time is over; the sweeper calls this."""
        with self._lock:
            self._notice_stall()
            self._swept = time.monotonic()
            now = self._clock()
            over = [
                number
                for number, session in self._sessions.items()
                if session.ttl_s is not None and session.deadline <= now
            ]
        for number in over:
            self.close_session(number)

    def _sweep(self) -> None:
        stalls = 0
        while not self._stopping.wait(SWEEP_S):
            self.expire_sessions()
            if stalls != self._stalls:
                stalls = self._stalls
                for listener in self._interruption_listeners:
                    listener()

    def _notice_stall(self) -> None:
        """If the sweeper is late, let all sessions begin anew. The caller holds the lock."""
        if time.monotonic() - self._swept > STALL_S:
            self._swept = time.monotonic()
            self._stalls += 1
            for session in self._sessions.values():
                session.deadline = max(session.deadline, self._clock() + (session.ttl_s or 0.0))

    def _require_session(self, number: int) -> _Session:
        self._notice_stall()
        found = self._sessions.get(number)
        if found is None or (found.ttl_s is not None and found.deadline <= self._clock()):
            raise SessionExpired(f"session {number:#x} with the metadata store has expired")
        return found

    # LMDB

    def _environment(self) -> lmdb.Environment:
        if self._env is None:
            raise MetadataStoreError(f"metadata store {self._directory} is not open")
        return self._env

    def _get_stored(self, key: str) -> Item | None:
        with self._environment().begin() as txn:
            record = txn.get(key.encode())
        if record is None:
            return None
        version, created_ms = RECORD.unpack_from(record)
        return Item(record[RECORD.size :], version, created_ms)

    def _commit(self, key: str, item: Item | None) -> None:
        """Store or delete a key, synced. The caller holds the lock."""
        if self._broken:
            raise MetadataStoreError(f"metadata store {self._directory} failed before: restart the process")
        try:
            with self._environment().begin(write=True) as txn:
                if item is None:
                    txn.delete(key.encode())
                else:
                    txn.put(key.encode(), RECORD.pack(item.version, item.created_ms) + item.value)
        except lmdb.Error as error:
            if isinstance(error, lmdb.MapFullError) or self._disk_is_full():  # the whole change was undone
                raise StoreFull(
                    f"metadata store {self._directory} has no room ({error}): free some disk space"
                ) from error
            self._broken = True
            fatal.trip(f"commit to metadata store {self._directory}: {error}")
            raise MetadataStoreError(f"metadata store {self._directory} failed: {error}") from error

    def _disk_is_full(self) -> bool:
        """Return whether the disk is full. LMDB reports EIO when a full disk accepts only part of a write."""
        disk = os.statvfs(self._directory)
        return disk.f_bavail * disk.f_frsize < DISK_FREE_MIN

    def _check_format(self) -> None:
        with self._environment().begin(write=True) as txn:
            found = txn.get(FORMAT_KEY)
            if found is None and txn.stat()["entries"] == 0:
                txn.put(FORMAT_KEY, FORMAT)
            elif found != FORMAT:
                raise StartRefused(
                    f"{self._directory} is not a metadata store of format {FORMAT.decode()} (found {found!r}): "
                    "name another directory in metadataServiceUri, or upgrade"
                )

    def _own_directory(self) -> None:
        path = self._directory / "owner.lock"
        self._owner_file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE_FILE)
        try:
            fcntl.flock(self._owner_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            owner = os.pread(self._owner_file, 32, 0).decode("ascii", "replace").strip() or "unknown"
            raise StartRefused(
                f"metadata store {self._directory} belongs to the running process {owner}: "
                "reach it by grpc://host:adminPort"
            ) from error
        os.ftruncate(self._owner_file, 0)
        os.pwrite(self._owner_file, b"%d\n" % os.getpid(), 0)

    def _close(self) -> None:
        if self._env is not None:
            self._env.close()
            self._env = None
        if self._owner_file is not None:
            os.close(self._owner_file)
            self._owner_file = None


def _check_expected(key: str, found: Item | None, expected: int | None) -> None:
    if expected is None:
        if found is not None:
            raise KeyExists(f"key {key!r} exists")
    elif found is None:
        raise KeyAbsent(f"key {key!r} does not exist")
    elif found.version != expected:
        raise VersionConflict(f"key {key!r} is at version {found.version}, not {expected}")


def _count_of(key: str, item: Item) -> int:
    """Return the value of a counter, which can be incremented. Raises IncorrectParameter for another key."""
    if item.session == NO_SESSION and COUNTER.fullmatch(item.value) and int(item.value) < COUNT_MAX:
        return int(item.value)
    raise IncorrectParameter(f"key {key!r} is not a counter below {COUNT_MAX}: name another key")


def _check_sizes(key: str, value: bytes) -> None:
    _check_key(key)
    if len(value) > VALUE_BYTES_MAX:
        raise IncorrectParameter(f"value of {key!r} has {len(value)} bytes, at most {VALUE_BYTES_MAX} are allowed")


def _check_key(key: str) -> None:
    if not 0 < len(key.encode()) <= KEY_BYTES_MAX or "\0" in key:
        raise IncorrectParameter(f"key {key[:64]!r} must have 1 to {KEY_BYTES_MAX} bytes and no zero byte")
