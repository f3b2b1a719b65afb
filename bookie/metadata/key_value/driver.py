"""The metadata driver over versioned keys, for the embedded store as well as for a remote one; the driver for etcd
builds on it.

    instanceid                 the instance id; there is no layout
    cookies/<bookie id>        text of its VERSION files
    bookies/writable/<id>      service info, under the bookie's session
    bookies/readonly/<id>
    ledgers/<19 digits>        ledger metadata, as in ZooKeeper
    next-ledger-id             counter
    logs/<name>                the ledgers of a log

The keys for replication are described in `key_value.replication`.
Any thread may call; listeners run on the watch thread.
"""

import secrets
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace

from bookie.errors import (
    BookieAlreadyRegistered,
    ClusterNotInitialized,
    IllegalOperation,
    LedgerExists,
    LedgerIdOverflow,
    MetadataStoreError,
    MetadataVersionConflict,
    NoSuchLedgerMetadata,
)
from bookie.metadata.driver import Cluster, ClusterSeen, Ledgers, Subscription, Versioned
from bookie.metadata.key_value.keys import KeyAbsent, KeyExists, KeyValues, VersionConflict, pages
from bookie.metadata.key_value.logs import KeyValueLogs
from bookie.metadata.key_value.replication import KeyValueElection, KeyValueReplication
from bookie.metadata.records.ledger_codec import parse_ledger, serialize_ledger, serialize_new_ledger
from bookie.metadata.records.ledger_metadata import LEDGER_IDS_END, LedgerMetadata
from bookie.metadata.watching import Watch, Watcher

COOKIES = "cookies/"
BOOKIES = "bookies/"
LEDGERS = "ledgers/"
INSTANCE = "instanceid"
HEALTH_CHECKS_OFF = "disableHealthCheck"
NEXT_LEDGER = "next-ledger-id"
LAST_CALLS_S = 1.0
"""How long calls may still take when the driver is stopped, in seconds."""
PATIENCE = 1.5
"""How many session timeouts to wait for the end of an old session, which may come a little after its timeout."""


class KeyValueCluster:
    """The key whose existence makes a store a cluster."""

    def __init__(self, store: KeyValues) -> None:
        self._store = store

    def initialize(self, instance_id: str | None = None) -> str:
        instance_id = instance_id or str(uuid.uuid4())
        try:
            self._store.put(INSTANCE, instance_id.encode(), None)
        except KeyExists as error:
            raise IllegalOperation("the metadata store already holds a cluster") from error
        return instance_id

    def destroy(self) -> None:
        registered = self._store.keys(BOOKIES, limit=1)
        if registered:
            raise IllegalOperation(f"bookie {registered[0].rpartition('/')[2]} is registered: stop all bookies first")
        for page in pages(self._store, ""):
            for key in page:
                with suppress(KeyAbsent):
                    self._store.delete(key)

    def health_checks(self) -> bool:
        return self._store.get(HEALTH_CHECKS_OFF) is None

    def enable_health_checks(self, *, enabled: bool) -> None:
        with suppress(KeyAbsent, KeyExists):
            if enabled:
                self._store.delete(HEALTH_CHECKS_OFF)
            else:
                self._store.put(HEALTH_CHECKS_OFF, b"", None)

    def is_initialized(self) -> bool:
        return self._store.get(INSTANCE) is not None

    def instance_id(self) -> str | None:
        item = self._store.get(INSTANCE)
        if item is None:
            raise ClusterNotInitialized("the metadata store holds no cluster: initialize it first")
        return item.value.decode()

    def seen(self) -> ClusterSeen:
        session = self._store.session()
        instance_id = self.instance_id()
        if self._store.session() != session:
            raise MetadataStoreError("the session with the metadata store ended meanwhile")
        return ClusterSeen(instance_id, "", session)


class KeyValueRegistrations:
    """This process's own registrations, under its session."""

    def __init__(self, store: KeyValues, session_timeout_s: float) -> None:
        self._store = store
        self._session_timeout_s = session_timeout_s

    def register(self, bookie_id: str, info: bytes, *, read_only: bool) -> None:
        deadline = time.monotonic() + PATIENCE * self._session_timeout_s
        wanted = _mode_prefix(read_only=read_only) + bookie_id
        other = _mode_prefix(read_only=not read_only) + bookie_id
        self._await_ours_or_free(other, bookie_id, deadline)
        while not self._await_ours_or_free(wanted, bookie_id, deadline):
            try:
                self._store.put(wanted, info, None, self._store.session())
            except KeyExists:
                continue
        self._drop(other)

    def unregister(self, bookie_id: str) -> None:
        for read_only in (False, True):
            key = _mode_prefix(read_only=read_only) + bookie_id
            item = self._store.get(key)
            if item is not None and item.session == self._store.session():
                self._drop(key)

    def is_registered(self, bookie_id: str, *, read_only: bool) -> bool:
        wanted = self._store.get(_mode_prefix(read_only=read_only) + bookie_id)
        other = self._store.get(_mode_prefix(read_only=not read_only) + bookie_id)
        return wanted is not None and wanted.session == self._store.session() and other is None

    def on_session_loss(self, listener: Callable[[], None]) -> None:
        self._store.on_session_loss(listener)

    def _await_ours_or_free(self, key: str, bookie_id: str, deadline: float) -> bool:
        """Return True if the key is ours, and False if it is absent; wait while it belongs to another session."""
        changed = threading.Event()
        end_watch = self._store.watch(lambda touched: changed.set() if touched in {"", key} else None)
        try:
            while True:
                changed.clear()
                item = self._store.get(key)
                if item is None or item.session == self._store.session():
                    return item is not None
                if not changed.wait(max(deadline - time.monotonic(), 0)):
                    raise BookieAlreadyRegistered(
                        f"bookie {bookie_id} is registered by another process: "
                        "stop it, or give this bookie another bookieId"
                    )
        finally:
            end_watch()

    def _drop(self, key: str) -> None:
        try:
            self._store.delete(key)
        except KeyAbsent:
            return


class KeyValueBookies:
    """The bookies of the cluster."""

    def __init__(self, store: KeyValues, watcher: Watcher) -> None:
        self._store = store
        self._watcher = watcher

    def present(self, *, read_only: bool) -> frozenset[str]:
        return self._names(_mode_prefix(read_only=read_only))

    def known(self) -> frozenset[str]:
        return self._names(COOKIES)

    def info(self, bookie_id: str) -> bytes | None:
        for read_only in (False, True):
            item = self._store.get(_mode_prefix(read_only=read_only) + bookie_id)
            if item is not None:
                return item.value
        return None

    def watch(self, listener: Callable[[frozenset[str]], None], *, read_only: bool) -> Subscription:
        prefix = _mode_prefix(read_only=read_only)

        def read(_watch: Watch[frozenset[str]]) -> frozenset[str]:
            return self._names(prefix)

        return self._watcher.add(read, listener, topic=prefix)

    def on_interruption(self, listener: Callable[[], None]) -> None:
        self._store.on_interruption(listener)

    def _names(self, prefix: str) -> frozenset[str]:
        return frozenset(key.removeprefix(prefix) for page in pages(self._store, prefix) for key in page)


class KeyValueCookies:
    """The cookies, one key for each bookie."""

    def __init__(self, store: KeyValues) -> None:
        self._store = store

    def read(self, bookie_id: str) -> tuple[bytes, int] | None:
        item = self._store.get(COOKIES + bookie_id)
        return None if item is None else (item.value, item.version)

    def write(self, bookie_id: str, text: bytes, version: int | None) -> int:
        try:
            return self._store.put(COOKIES + bookie_id, text, version).version
        except (KeyExists, KeyAbsent, VersionConflict) as error:
            raise MetadataVersionConflict(
                f"cookie of {bookie_id} was changed by another process: read it again"
            ) from error

    def remove(self, bookie_id: str, version: int | None = None) -> None:
        try:
            self._store.delete(COOKIES + bookie_id, version)
        except (KeyAbsent, VersionConflict) as error:
            raise MetadataVersionConflict(f"cookie of {bookie_id} is absent or was changed: read it again") from error


class KeyValueLedgers:
    """The metadata of ledgers, one key for each."""

    def __init__(self, store: KeyValues, watcher: Watcher) -> None:
        self._store = store
        self._watcher = watcher

    def create(self, ledger_id: int, metadata: LedgerMetadata) -> Versioned[LedgerMetadata]:
        if not 0 <= ledger_id < LEDGER_IDS_END:
            raise LedgerIdOverflow(f"ledger id {ledger_id} is not in [0, {LEDGER_IDS_END - 1}]")
        if metadata.format_version == 3:  # the token also makes the bytes unique
            metadata = replace(metadata, token=secrets.randbelow(LEDGER_IDS_END - 1) + 1)
        try:
            item = self._store.put(self._key(ledger_id), serialize_new_ledger(ledger_id, metadata), None)
        except KeyExists as error:
            raise LedgerExists(f"ledger {ledger_id} already exists") from error
        return Versioned(metadata, item.version, item.created_ms)

    def read(self, ledger_id: int, *, latest: bool = False) -> Versioned[LedgerMetadata]:  # noqa: ARG002 - it always is
        found = self._find(ledger_id)
        if found is None:
            raise NoSuchLedgerMetadata(f"ledger {ledger_id} does not exist")
        return found

    def write(self, ledger_id: int, metadata: LedgerMetadata, version: int) -> Versioned[LedgerMetadata]:
        metadata = replace(metadata, token=0)
        try:
            item = self._store.put(self._key(ledger_id), serialize_ledger(metadata), version)
        except KeyAbsent as error:
            raise NoSuchLedgerMetadata(f"ledger {ledger_id} does not exist") from error
        except VersionConflict as error:
            raise _changed(ledger_id, version) from error
        return Versioned(metadata, item.version, item.created_ms)

    def delete(self, ledger_id: int, version: int | None = None) -> None:
        try:
            self._store.delete(self._key(ledger_id), version)
        except KeyAbsent as error:
            raise NoSuchLedgerMetadata(f"ledger {ledger_id} does not exist") from error
        except VersionConflict as error:
            raise _changed(ledger_id, version) from error

    def ranges(self) -> Iterator[list[int]]:
        for page in pages(self._store, LEDGERS):
            yield [int(key.removeprefix(LEDGERS)) for key in page]

    def watch(self, ledger_id: int, listener: Callable[[Versioned[LedgerMetadata] | None], None]) -> Subscription:
        return self._watcher.add(lambda _watch: self._find(ledger_id), listener, topic=self._key(ledger_id))

    def new_id(self) -> int:
        return self._store.increment(NEXT_LEDGER)

    def last_id(self) -> int:
        found = self._store.get(NEXT_LEDGER)
        return int(found.value) - 1 if found else -1

    def leave_ids(self, last: int) -> None:
        while self.last_id() < last:
            found = self._store.get(NEXT_LEDGER)
            with suppress(KeyExists, VersionConflict):
                self._store.put(NEXT_LEDGER, b"%d" % (last + 1), found.version if found else None)

    def _key(self, ledger_id: int) -> str:
        return f"{LEDGERS}{ledger_id:019d}"

    def _find(self, ledger_id: int) -> Versioned[LedgerMetadata] | None:
        item = self._store.get(self._key(ledger_id))
        return None if item is None else Versioned(parse_ledger(ledger_id, item.value), item.version, item.created_ms)


class KeyValueDriver:
    """All parts of a `MetadataDriver` over one store. `store` is public for the service that serves it to other
    processes.
    """

    def __init__(self, store: KeyValues, *, session_timeout_s: float) -> None:
        self.store = store
        self._watcher = Watcher("metadata-watch")
        self._end_watch: Callable[[], None] | None = None
        self.cluster: Cluster = KeyValueCluster(store)
        self.registrations = KeyValueRegistrations(store, session_timeout_s)
        self.bookies = KeyValueBookies(store, self._watcher)
        self.cookies = KeyValueCookies(store)
        self.ledgers: Ledgers = KeyValueLedgers(store, self._watcher)
        self.logs = KeyValueLogs(store, self._watcher)
        self.replication = KeyValueReplication(store, self._watcher)
        self.election = KeyValueElection(store, self._watcher)

    def start(self) -> None:
        if self._end_watch is not None:
            return
        self.store.start()
        self._end_watch = self.store.watch(self._watcher.wake_topic)
        self._watcher.start()

    def hurry(self, patience_s: float) -> None:
        self.store.hurry(patience_s)

    def stop(self) -> None:
        self.store.hurry(LAST_CALLS_S)  # the watch thread may be in a call
        if self._end_watch is not None:
            self._end_watch()
        self._watcher.stop()
        self.store.stop()


def _mode_prefix(*, read_only: bool) -> str:
    return "bookies/readonly/" if read_only else "bookies/writable/"


def _changed(ledger_id: int, version: int | None) -> MetadataVersionConflict:
    return MetadataVersionConflict(f"ledger {ledger_id} is no longer at version {version}: read it again")
