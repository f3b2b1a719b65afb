"""One bookie in this process: what starts after what, and stops before what.

Main thread; disks, planes and the metadata session call back from their own. Each step of `start` puts its undoing on
one stack, so a start that fails half-way and a stop take the same way back. Nothing is written into the bookie's
directories before their cookies are found right.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from bookie.auth.registry import open_server
from bookie.errors import BookKeeperError, StartRefused
from bookie.metadata.driver import MetadataDriver, open_driver
from bookie.metadata.identity import advertised_host, bind_host, candidate_ids, choose_bookie_id
from bookie.metadata.registration import BookieRegistration
from bookie.metadata.service_info import OUR_PROPERTIES, BookieServiceInfo, bookie_endpoint
from bookie.metadata.uri import parse_uri
from bookie.server import budget
from bookie.server.collecting import disk_levels, make_garbage
from bookie.server.control import discover
from bookie.server.data_port import DataPort
from bookie.server.directories import Directories, DirtyMarker
from bookie.server.disk_state import DiskState, Level
from bookie.server.disks import DiskMonitor
from bookie.server.mode import Mode
from bookie.server.ports import check_free
from bookie.server.progress import Told
from bookie.server.settings import Settings, TlsSettings
from bookie.server.supervisor import Supervisor
from bookie.server.watched_disks import make_monitor, restore_status
from bookie.storage.cookies import make_cookie, validate_cookies
from bookie.storage.garbage.collection import Garbage
from bookie.storage.ledger_storage import LedgerStorage
from bookie.storage.settings import MIB

if TYPE_CHECKING:
    from bookie.server.tls import TlsContexts

__all__ = ["Addresses", "Bookie"]

log = logging.getLogger(__name__)

PLANE_GRACE_S = 1.0
DRAIN_SHARE = 0.3
"""Of the time for a stop, how much outstanding answers may take."""


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where a started bookie listens; `admin` is None without an admin plane."""

    data: tuple[str, int]
    admin: tuple[str, int] | None


class Bookie:
    """One bookie. `start` returns once clients can find it; `stop` returns once everything is on disk and let go.

    `on_give_up` is called once, from another thread, when it cannot go on but can still stop in order. It is also the
    `Control` that planes see. The constructor raises ConfigurationError and touches nothing.
    """

    def __init__(
        self, settings: Settings, supervisor: Supervisor, on_give_up: Callable[[BookKeeperError], None]
    ) -> None:
        self._supervisor = supervisor
        self._on_give_up = on_give_up
        self._settings = replace(settings, network=replace(settings.network, host=bind_host(settings.identity)))
        self.bookie_id = choose_bookie_id(settings.identity)
        self._host = advertised_host(settings.identity)
        self.admin_host = settings.server.admin_host
        self.admin_port = settings.server.admin_port
        self.metadata: MetadataDriver = open_driver(
            settings.metadata.service_uri, session_timeout_ms=settings.metadata.session_timeout_ms
        )
        self._storage = LedgerStorage(settings.storage, settings.journal)
        provider = open_server(settings.auth)
        self._data_port = DataPort(self._storage, self._settings.network, provider, _tls(settings.tls))
        self._mode = Mode()
        self.disks: DiskMonitor = make_monitor(settings, self._storage)
        self.garbage: Garbage | None = None
        self._undo = ExitStack()
        self._hurry = threading.Event()
        self._phase = "starting"

    def start(self, go_on: Callable[[], None]) -> Addresses:
        """`go_on` is called between steps and during replay; what it raises ends the start, as any error does."""
        with ExitStack() as undo:
            addresses = self._start(undo, go_on)
            self._undo = undo.pop_all()
        self._phase = "running"
        return addresses

    def stop(self) -> None:
        """Undo the start, last step first. Idempotent. An error leaves the DIRTY markers in place."""
        self._phase = "stopping"
        self._undo.close()
        self._phase = "stopped"

    def hurry(self) -> None:
        """Let a running or coming `stop` not wait for outstanding answers. Any thread."""
        self._hurry.set()
        self._data_port.hurry()

    # What planes see.

    @property
    def state(self) -> str:
        """`starting`, `writable`, `read-only`, `stopping` or `stopped`."""
        if self._phase != "running":
            return self._phase
        return "read-only" if self._mode.read_only else "writable"

    def stats(self) -> Mapping[str, int | float]:
        """Counters and gauges of storage, data port, disks and garbage collection."""
        garbage = self.garbage.stats() if self.garbage else {}
        return {**self._storage.stats(), **self._data_port.stats(), **self.disks.stats(), **garbage}

    def checkpoint(self) -> None:
        """Flush the write caches now."""
        self._storage.checkpoint()

    def set_read_only(self, *, read_only: bool) -> None:
        """The operator's wish."""
        self._mode.set("operator", read_only=read_only)

    # The steps.

    def _start(self, undo: ExitStack, go_on: Callable[[], None]) -> Addresses:
        settings = self._settings
        self.check_memory()
        check_free("bookiePort", settings.network.host, settings.network.port)
        check_free("adminPort", self.admin_host, self.admin_port)
        directories = Directories(self._directories())
        directories.acquire()
        undo.callback(directories.abandon)
        self._open_metadata(undo, directories)
        go_on()
        self._check_cookies()
        directories.keep()
        self._open_storage(undo, go_on)
        go_on()
        if settings.disks.force_read_only:
            self._mode.set("config", read_only=True)
        self._collect_garbage(undo)
        self._watch_disks(undo)
        data = self._data_port.start()
        undo.callback(self._stop_data_port)
        self._watch_threads(undo, self._data_port.threads())
        log.info("data port open", extra={"host": data[0], "port": data[1]})
        admin = self._start_planes(undo)
        self._register(undo, data[1])
        return Addresses(data, admin)

    def _directories(self) -> list[Path]:
        """All that this process must own, the embedded metadata store included."""
        storage = self._settings.storage
        where = parse_uri(self._settings.metadata.service_uri)
        store = [Path(where.path)] if where.scheme == "lmdb" else []
        return [*self._settings.journal.directories, *storage.ledger_directories, *storage.index_directories, *store]

    def check_memory(self) -> None:
        parts = budget.parts(self._storage.memory_budget(), self._settings.network, tls=self._data_port.tls is not None)
        limit = self._settings.server.memory_limit_bytes or budget.allowed_bytes()
        total = budget.check(parts, limit)
        facts = {f"{name}_mib": size // MIB for name, size in parts.items()}
        log.info("memory budget", extra={"total_mib": total // MIB, "allowed_mib": limit // MIB, **facts})

    def _open_metadata(self, undo: ExitStack, directories: Directories) -> None:
        """Connect. The embedded store makes its own cluster; a store made by a start that fails is removed again."""
        where = parse_uri(self._settings.metadata.service_uri)
        if where.scheme == "lmdb":
            undo.callback(directories.empty_if_made, Path(where.path))
        self.metadata.start()
        undo.callback(self.metadata.stop)
        if where.scheme == "lmdb" and not self.metadata.cluster.is_initialized():
            log.info("new cluster", extra={"instance_id": self.metadata.cluster.initialize(), "store": where.path})

    def _check_cookies(self) -> None:
        settings = self._settings
        journals, ledgers = settings.journal.directories, settings.storage.ledger_directories
        indexes = settings.storage.index_directories
        wanted = make_cookie(
            self.bookie_id,
            journals=journals,
            ledgers=ledgers,
            indexes=indexes if indexes != ledgers else (),
            instance_id=self.metadata.cluster.instance_id(),
        )
        candidates = candidate_ids(settings.identity)
        validate_cookies(wanted, self.metadata.cookies, [*journals, *ledgers, *indexes], candidate_ids=candidates)

    def _open_storage(self, undo: ExitStack, go_on: Callable[[], None]) -> None:
        dirty = DirtyMarker(self._settings.storage.ledger_directories)
        if dirty.is_set():
            self._after_unclean_end(dirty)
        begun = time.monotonic()
        with Told("replaying journals", go_on) as replayed, Told("scanning entry logs", go_on) as scanned:
            self._storage.open(replayed, scanned)
        undo.callback(self._close_storage, dirty)
        dirty.set()
        log.info("storage open", extra={"seconds": f"{time.monotonic() - begun:.3f}"})
        self._storage.start()
        self._watch_threads(undo, self._storage.threads())
        self._mode.follow(self._storage.set_read_only)

    def _after_unclean_end(self, dirty: DirtyMarker) -> None:
        """With a journal nothing is lost. Without one we would deny acknowledged entries, so we do not start."""
        if not self._settings.journal.write_data:
            raise StartRefused(
                "journalWriteData=false and the last run did not end in order: acknowledged entries may be lost here;"
                f" recover this bookie from its peers, or remove {dirty.files()} to start without them"
            )
        log.warning("the last run did not end in order; the journal has what was not flushed")

    def _close_storage(self, dirty: DirtyMarker) -> None:
        self._storage.stop()
        self._data_port.close()
        dirty.clear()

    def _watch_threads(self, undo: ExitStack, threads: Iterable[threading.Thread]) -> None:
        """From now until the stop, the death of one of them ends the process."""
        for thread in threads:
            self._supervisor.watch(thread.name, thread.is_alive)
            undo.callback(self._supervisor.forget, thread.name)

    def _collect_garbage(self, undo: ExitStack) -> None:
        """Start the thread that reclaims space; its first cycle comes after a pause."""
        ids = {self.bookie_id, *candidate_ids(self._settings.identity)}
        self.garbage = make_garbage(self._settings, self._storage, self.metadata, ids)
        self.garbage.start()
        undo.callback(self.garbage.stop)
        self._watch_threads(undo, self.garbage.threads())

    def _watch_disks(self, undo: ExitStack) -> None:
        if self._settings.disks.keep_status:
            restore_status(self._mode, self.disks, self._settings.storage.ledger_directories)
        self.disks.start()
        undo.callback(self.disks.stop)
        self.disks.follow(self._disks_changed)

    def _disks_changed(self, state: DiskState) -> None:
        if state.read_only and not self._settings.disks.read_only_allowed:
            self._on_give_up(DiskFull("the disk is full and readOnlyModeEnabled=false; free space or allow the mode"))
            return
        self._storage.allow(
            high_priority=state.high_priority,
            any_full=self._settings.disks.any_full_is_read_only,
            full={one.path for one in state.directories if one.level >= Level.FULL},
        )
        self._mode.set("disk", read_only=state.read_only)
        if self.garbage is not None:
            self.garbage.disk(disk_levels(self._settings.storage, state))

    def _stop_data_port(self) -> None:
        grace = 0.0 if self._hurry.is_set() else DRAIN_SHARE * self._settings.server.shutdown_timeout_ms / 1000
        self._data_port.stop(grace)

    def _start_planes(self, undo: ExitStack) -> tuple[str, int] | None:
        """The address of the last plane that was found; None without one."""
        address = None
        if self.admin_port < 0:
            return None
        for name, factory in discover():
            plane = factory(self)
            if plane is None:
                continue
            address = plane.start()
            undo.callback(plane.stop, PLANE_GRACE_S)
            log.info("plane open", extra={"plane": name, "host": address[0], "port": address[1]})
        return address

    def _register(self, undo: ExitStack, port: int) -> None:
        settings = self._settings.metadata
        endpoint = bookie_endpoint(self._host, port, tls=self._data_port.tls is not None)
        info = BookieServiceInfo((endpoint,), OUR_PROPERTIES)
        registration = BookieRegistration(
            self.metadata.registrations,
            self.bookie_id,
            info.to_bytes(),
            on_give_up=self._on_give_up,
            retries_max=settings.retries_max,
            backoff_start_s=settings.backoff_start_ms / 1000,
            backoff_max_s=settings.backoff_max_ms / 1000,
        )
        undo.callback(registration.stop)
        registration.start(read_only=self._mode.read_only)
        self._mode.follow(registration.set_read_only)


def _tls(settings: TlsSettings) -> "TlsContexts | None":
    if not settings.provider_factory:
        return None
    from bookie.server.tls import TlsContexts  # noqa: PLC0415 - loading OpenSSL would slow every other start

    return TlsContexts(settings)


class DiskFull(BookKeeperError):
    """No ledger directory has room, and the configuration forbids the read-only mode."""

    exit_code = 5
