"""One bookie in this process: the order in which its parts start and stop.

Main thread; disks, planes and the metadata session call back from their own threads. Each step of `start` puts its
undoing on one stack, so that a failed start and a stop undo the same steps. Nothing is written to the bookie's
directories before their cookies are validated.
"""

import logging
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bookie.auth.registry import open_server
from bookie.errors import BookKeeperError, IllegalOperation, MetadataStoreError, StartRefused
from bookie.metadata import open_driver
from bookie.metadata.bookies.identity import advertised_host, bind_host, candidate_ids, choose_bookie_id
from bookie.metadata.bookies.registration import BookieRegistration
from bookie.metadata.bookies.service_info import OUR_PROPERTIES, BookieServiceInfo, bookie_endpoint, http_endpoint
from bookie.metadata.driver import MetadataDriver
from bookie.metadata.uri import parse_uri
from bookie.metrics.family import Family
from bookie.server.checking import Port, check_parts, check_ports
from bookie.server.configuration.settings import Settings, TlsSettings
from bookie.server.control import (
    FLUSH_WAIT_S,
    MODE_WAIT_S,
    BookieDirectories,
    Plane,
    Service,
    discover_services,
    discover_startup_checks,
)
from bookie.server.data_port import DataPort
from bookie.server.disks.directories import Directories
from bookie.server.disks.dirty import DirtyMarker, Run, boot_id
from bookie.server.disks.monitor import DiskMonitor
from bookie.server.disks.state import DiskState
from bookie.server.disks.watched import make_monitor, restore_status
from bookie.server.metrics.bookie import BookieMetrics
from bookie.server.mode import Mode
from bookie.server.planes import make_token, open_planes, start_planes
from bookie.server.process import budget
from bookie.server.process.progress import ProgressReport
from bookie.server.process.shares import shared_out
from bookie.server.process.supervisor import Supervisor
from bookie.server.process.waiting import start_patiently
from bookie.server.storage.collecting import disk_levels, make_garbage
from bookie.server.storage.scrubbing import make_scrub
from bookie.server.storage.stored import Stored
from bookie.storage.cookies import make_cookie, validate_cookies
from bookie.storage.disk_level import DiskLevel
from bookie.storage.garbage.collection import Garbage
from bookie.storage.layout import INDEX_NAME, current
from bookie.storage.ledger_storage import LedgerStorage
from bookie.storage.scrub.scrubbing import Scrub
from bookie.storage.settings import MIB
from bookie.storage.tools.files import DiskFile, MarkFound, last_marks, list_files

if TYPE_CHECKING:
    from bookie.server.tls.contexts import TlsContexts

__all__ = ["Addresses", "Bookie"]

log = logging.getLogger(__name__)

DRAIN_SHARE = 0.3
"""The share of the time for a stop that outstanding responses may take."""
STORE_SHARE = 0.1
"""The share of the time for a stop that calls may wait for a metadata store that is silent, before what is stored is
flushed; at most STORE_S seconds. A session that could not be ended expires.
"""
STORE_S = 2.0


@dataclass(frozen=True, slots=True)
class Addresses:
    """The addresses of a started bookie: of the data port, and of its planes by name."""

    data: tuple[str, int]
    planes: Mapping[str, tuple[str, int]]


class Bookie:
    """A bookie in this process.

    `start` returns once clients can find it; `stop` returns once everything is on disk and released.

    `on_give_up` is called once, from another thread, when the bookie cannot continue but can still stop cleanly. The
    object is also the `Control` of planes. The constructor raises ConfigurationError and changes nothing.
    """

    def __init__(
        self, settings: Settings, supervisor: Supervisor, on_give_up: Callable[[BookKeeperError], None]
    ) -> None:
        self._supervisor = supervisor
        self._on_give_up = on_give_up
        settings = shared_out(settings)
        self._settings = replace(settings, network=replace(settings.network, host=bind_host(settings.identity)))
        self.bookie_id = choose_bookie_id(settings.identity)
        self._host = advertised_host(settings.identity)
        self.admin_host = settings.server.admin_host
        self.admin_port = settings.server.admin_port
        self.admin = settings.admin
        self.access = settings.access
        self.http = settings.http
        self.own_token: Path | None = None
        self.names = (self.bookie_id, self._host)
        self.metadata: MetadataDriver = open_driver(
            settings.metadata.service_uri, session_timeout_ms=settings.metadata.session_timeout_ms
        )
        self._storage = LedgerStorage(settings.storage, settings.journal)
        provider = open_server(settings.auth)
        self._data_port = DataPort(self._storage, self._settings.network, provider, _tls(settings.tls))
        self._mode = Mode()
        self._registration: BookieRegistration | None = None
        self.disks: DiskMonitor = make_monitor(settings, self._storage)
        self.garbage: Garbage | None = None
        self.scrub: Scrub | None = None
        self.stored = Stored(self._storage)
        self.client_keys = dict(settings.recovery.keys)
        self.recovery = self.client_keys if settings.recovery.enabled else None
        self._metrics = BookieMetrics(self._storage, self._data_port, self.disks, settings.statistics)
        self._planes: dict[str, Plane] = {}
        self._services: list[Service] = []
        self._undo = ExitStack()
        self._hurry = threading.Event()
        self._phase = "starting"
        self._awaits = ""
        self._sane = -1

    def start(self, go_on: Callable[[], None]) -> Addresses:
        """Start the bookie. `go_on` is called between steps and during replay; an exception of it ends the start."""
        with ExitStack() as undo:
            addresses = self._start(undo, go_on)
            self._undo = undo.pop_all()
        self._phase = "running"
        return addresses

    def stop(self) -> None:
        """Undo the start, last step first. Idempotent. An error leaves the DIRTY markers in place."""
        self._phase = "stopping"
        self.metadata.hurry(min(STORE_S, STORE_SHARE * self._settings.server.shutdown_timeout_ms / 1000))
        self._undo.close()
        self._phase = "stopped"

    def hurry(self) -> None:
        """Let a running or later `stop` not wait for outstanding responses. Any thread."""
        self._hurry.set()
        self._data_port.hurry()

    # The interface for planes, which `Control` describes.

    @property
    def state(self) -> str:
        """`starting`, `writable`, `read-only`, `stopping` or `stopped`."""
        if self._phase != "running":
            return self._phase
        return "read-only" if self._mode.read_only else "writable"

    @property
    def awaits(self) -> str:
        """What the start waits for, as the end of a sentence; empty if it waits for nothing."""
        return self._awaits

    def stats(self) -> Mapping[str, int | float]:
        """Return counters and gauges of storage, data port, disks, garbage collection, planes and services."""
        garbage = self.garbage.stats() if self.garbage else {}
        scrub = self.scrub.stats() if self.scrub else {}
        own = {"sanity": self._sane, **self._storage.stats(), **self._data_port.stats()}
        own.update({**self.disks.stats(), **garbage, **scrub})
        for plane in self._planes.values():
            own.update(plane.stats())
        for service in list(self._services):
            own.update(service.stats())
        return own

    def note_sanity(self, *, passed: bool) -> None:
        """Record the result of a test, which a metric shows until the next one."""
        self._sane = int(passed)

    def metrics(self) -> list[Family]:
        """Return all metrics with their present values."""
        collected = self.garbage.stats_of_directories() if self.garbage else []
        labelled = [family for service in list(self._services) for family in service.families()]
        return self._metrics.families(self.state, self.stats(), collected, labelled)

    @property
    def read_only(self) -> bool:
        """Whether the bookie refuses writes."""
        return self._mode.read_only

    @property
    def read_only_reasons(self) -> frozenset[str]:
        """The reasons for being read-only."""
        return self._mode.reasons

    @property
    def directories(self) -> BookieDirectories:
        """The directories of the bookie, as configured."""
        storage = self._settings.storage
        return BookieDirectories(
            self._settings.journal.directories, storage.ledger_directories, storage.index_directories
        )

    def configuration(self) -> Mapping[str, str]:
        """Return every key with its effective text."""
        return self._settings.texts

    def disk_state(self) -> DiskState:
        """Return the state of the disks, as of the last check."""
        return self.disks.state

    def last_marks(self) -> list[MarkFound]:
        """Read the marks from their files."""
        own = self.directories
        return last_marks([current(one) for one in own.ledgers], len(own.journals))

    def files(self) -> Iterator[DiskFile]:
        """Yield every file once."""
        return list_files([current(one) for part in self.directories for one in part])

    def checkpoint(self, within_s: float = FLUSH_WAIT_S) -> None:
        """Flush the write caches. Raises IllegalOperation if that failed, RequestTimeout if it takes longer."""
        if self._storage.checkpoint(within_s):
            return
        self.disks.check()  # so that the state shows a full disk, too
        if full := ", ".join(map(str, sorted(self._storage.full_directories()))):
            raise IllegalOperation(f"no space for what was to be flushed in {full}, which the journal keeps; free some")
        raise IllegalOperation("not all was flushed, the journal keeps the rest: the log says why, or the bookie stops")

    def set_read_only(self, *, read_only: bool, within_s: float = MODE_WAIT_S) -> None:
        """Set or clear the operator's read-only mode, and wait until the registration shows the mode of the bookie.

        Raises MetadataStoreError if the store does not take it within that time. The mode has changed then, and the
        registration follows when the store answers.
        """
        self._mode.set("operator", read_only=read_only)
        if self._registration is not None and not self._registration.wait_settled(within_s):
            raise MetadataStoreError(
                f"the bookie is {self.state} now, but the metadata store did not take its registration within"
                f" {within_s:.1f} s; clients see the change when the store answers"
            )

    # The steps of a start.

    def _start(self, undo: ExitStack, go_on: Callable[[], None]) -> Addresses:
        settings = self._settings
        self._check_memory()
        check_ports(self._ports(), free=True)
        check_parts(self)
        self._planes = open_planes(self, undo)
        directories = Directories(self._directories())
        directories.acquire()
        undo.callback(directories.abandon)
        self._open_metadata(undo, directories, go_on)
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
        if self.admin_port >= 0 or self.http.enabled:
            self.own_token = make_token(settings.storage.ledger_directories[0])
        addresses = start_planes(self._planes, undo)
        self._register(undo, data[1], addresses.get("http"))
        self._scrub(undo)
        self._start_services(undo)
        return Addresses(data, addresses)

    def _directories(self) -> list[Path]:
        """Return all directories that this process must own, including that of the embedded metadata store."""
        storage = self._settings.storage
        where = parse_uri(self._settings.metadata.service_uri)
        store = [Path(where.path)] if where.scheme == "lmdb" else []
        return [*self._settings.journal.directories, *storage.ledger_directories, *storage.index_directories, *store]

    def check(self) -> None:
        """Check what a start checks before it changes anything, except that ports and directories are free, because the
        bookie may be running. Raises ConfigurationError or StartRefused.
        """
        self._check_memory()
        check_ports(self._ports(), free=False)
        check_parts(self)
        Directories(self._directories()).check()

    def _ports(self) -> list[Port]:
        network, http = self._settings.network, self.http
        ports = [("bookiePort", network.host, network.port), ("adminPort", self.admin_host, self.admin_port)]
        return [*ports, *([("httpServerPort", http.host, http.port)] if http.enabled else [])]

    def _check_memory(self) -> None:
        parts = budget.parts(
            self._storage.memory_budget(), self._settings.network, self.http, tls=self._data_port.tls is not None
        )
        limit = self._settings.server.memory_limit_bytes or budget.allowed_bytes()
        budget.check(parts, limit)
        facts = {f"{name}_mib": -(-size // MIB) for name, size in parts.items()}
        log.info("memory budget", extra={"total_mib": sum(facts.values()), "allowed_mib": limit // MIB, **facts})

    def _open_metadata(self, undo: ExitStack, directories: Directories, go_on: Callable[[], None]) -> None:
        """Connect. An embedded store creates its own cluster; a store created by a failed start is removed again."""
        where = parse_uri(self._settings.metadata.service_uri)
        if where.scheme == "lmdb":
            undo.callback(directories.empty_if_made, Path(where.path))
        with self._waiting("its metadata store"):
            start_patiently(self.metadata.start, self._settings.metadata.startup_timeout_ms, go_on)
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
        journal = self._settings.journal
        now = Run(write_data=journal.write_data, sync_data=journal.sync_data, boot=boot_id())
        dirty = DirtyMarker(self._settings.storage.ledger_directories, now)
        lost = dirty.lost()
        if dirty.is_set():
            self._after_unclean_end(dirty, lost)
        begun = time.monotonic()
        with (
            self._waiting("the replay of its journals"),
            ProgressReport("replaying journals", go_on) as replayed,
            ProgressReport("scanning entry logs", go_on) as scanned,
        ):
            self._storage.open(replayed, scanned, distrusted=bool(lost), same_boot=dirty.same_boot())
        undo.callback(self._close_storage, dirty)
        dirty.set()
        log.info("storage open", extra={"seconds": f"{time.monotonic() - begun:.3f}"})
        self._storage.start()
        undo.callback(self.stored.close)
        self._watch_threads(undo, self._storage.threads())
        self._mode.follow(self._storage.set_read_only)

    def _after_unclean_end(self, dirty: DirtyMarker, lost: str) -> None:
        """Handle an unclean end. With a synced journal nothing is lost. Without one the bookie could deny
        acknowledged entries: either ledgers that may lack some are put into limbo first, or the start is refused.
        `lost` says why entries may be lost; it is empty if they are not.
        """
        if not lost:
            log.warning("the last run did not end cleanly; the journal has the entries that were not flushed")
            return
        if not self._settings.storage.check_integrity:
            raise StartRefused(
                f"the last run, with {lost}, did not end cleanly: acknowledged entries may be lost here;"
                " set dataIntegrityChecking=true to start with what is left and repair it,"
                f" recover this bookie from its peers, or remove {dirty.files()} to start without them"
            )
        checks = list(discover_startup_checks())
        if not checks:
            raise StartRefused(
                "dataIntegrityChecking=true: no such check is installed (entry points of bookie.startup_checks);"
                " reinstall the package, or set it to false"
            )
        indexes = [current(path) / INDEX_NAME for path in self._settings.storage.index_directories]
        for name, check in checks:
            limbo = check(self.bookie_id, self.metadata.ledgers, indexes)
            facts = {"check": name, "ledgers": limbo}
            log.warning("the last run did not end cleanly; ledgers that may lack entries are in limbo", extra=facts)

    def _close_storage(self, dirty: DirtyMarker) -> None:
        self._storage.stop()
        self._data_port.close()
        if self._storage.flushed:
            dirty.clear()
        elif self._storage.journaled:
            dirty.settle()

    def _watch_threads(self, undo: ExitStack, threads: Iterable[threading.Thread]) -> None:
        """Let the death of one of these threads end the process, until the stop, or a request to hurry it."""

        def lives(thread: threading.Thread) -> bool:
            return thread.is_alive() or self._hurry.is_set()

        for thread in threads:
            self._supervisor.watch(thread.name, partial(lives, thread))
            undo.callback(self._supervisor.forget, thread.name)

    def _collect_garbage(self, undo: ExitStack) -> None:
        """Start the thread that reclaims space. Its first cycle comes after a pause."""
        ids = {self.bookie_id, *candidate_ids(self._settings.identity)}
        self.garbage = make_garbage(self._settings, self._storage, self.metadata, ids)
        self.garbage.start()
        undo.callback(self.garbage.stop)
        self._watch_threads(undo, self.garbage.threads())

    def _scrub(self, undo: ExitStack) -> None:
        """Start the thread that reads all entry logs again and again."""
        self.scrub = make_scrub(self._settings, self._storage, self.metadata)
        self.scrub.start()
        undo.callback(self.scrub.stop)
        self._watch_threads(undo, self.scrub.threads())

    def _watch_disks(self, undo: ExitStack) -> None:
        if self._settings.disks.keep_status:
            restore_status(self._mode, self.disks, self._settings.storage.ledger_directories)
        self.disks.start()
        undo.callback(self.disks.stop)
        self.disks.follow(self._disks_changed)

    def _disks_changed(self, state: DiskState) -> None:
        if state.read_only and not self._settings.disks.read_only_allowed:
            self._on_give_up(DiskFull("the disk is full and readOnlyModeEnabled=false; free space, or set it to true"))
            return
        self._storage.allow(
            high_priority=state.high_priority,
            any_full=self._settings.disks.any_full_is_read_only,
            full={one.path for one in state.directories if one.level >= DiskLevel.FULL},
        )
        self._mode.set("disk", read_only=state.read_only)
        if self.garbage is not None:
            self.garbage.disk(disk_levels(self._settings.storage, state))

    def _stop_data_port(self) -> None:
        grace = 0.0 if self._hurry.is_set() else DRAIN_SHARE * self._settings.server.shutdown_timeout_ms / 1000
        self._data_port.stop(grace)

    @contextmanager
    def _waiting(self, what: str) -> Generator[None]:
        """Tell probes what the start waits for while the block runs."""
        self._awaits = what
        try:
            yield
        finally:
            self._awaits = ""

    def _start_services(self, undo: ExitStack) -> None:
        started = set()
        for name, factory in discover_services():
            service = factory(self)
            if service is None:
                continue
            undo.callback(service.stop)
            service.start()
            self._services.append(service)
            started.add(name)
            log.info("service begun", extra={"service": name})
        if self.recovery is not None and "autorecovery" not in started:
            raise StartRefused(
                "autoRecoveryDaemonEnabled=true: no such service is installed (entry points of bookie.services);"
                " reinstall the package, or set it to false"
            )

    def _register(self, undo: ExitStack, port: int, http: tuple[str, int] | None) -> None:
        settings = self._settings.metadata
        endpoints = [bookie_endpoint(self._host, port, tls=self._data_port.tls is not None)]
        if http is not None:
            endpoints.append(http_endpoint(self._host, http[1]))
        info = BookieServiceInfo(tuple(endpoints), OUR_PROPERTIES)
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
        self._registration = registration


def _tls(settings: TlsSettings) -> "TlsContexts | None":
    if not settings.provider_factory:
        return None
    from bookie.server.tls.contexts import TlsContexts  # noqa: PLC0415 - loading OpenSSL would slow every other start

    return TlsContexts(settings)


class DiskFull(BookKeeperError):
    """No ledger directory has space, and the configuration forbids the read-only mode."""

    exit_code = 5
