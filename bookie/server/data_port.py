"""The data port: the listening socket, the I/O loops behind it, and the threads for requests that Python answers.

Entries never pass through Python.
"""

import logging
import socket
import threading
import time
from functools import partial
from typing import TYPE_CHECKING

from bookie._fast.base.op_stats import OpView
from bookie._fast.server.directory_ops import DirectoryView
from bookie._fast.server.io_loop import IoLoopRunner
from bookie._fast.server.limits import PortLimits
from bookie._fast.server.policy import LOGINS, REQUESTS, PolicyRequests
from bookie._fast.server.rejections import REASON_TEXTS, UNNAMED
from bookie._fast.server.stats import BatchView, merged, tally
from bookie._fast.store.read_pool import ReadPoolWorkers
from bookie._fast.store.storage import StorageEngine
from bookie.auth.provider import ServerProvider
from bookie.errors import StartRefused
from bookie.metadata.bookies.identity import is_loopback
from bookie.pb import wire_pb2 as wire
from bookie.server.configuration.settings import NetworkSettings, cores
from bookie.server.logs.access_log import AccessLog
from bookie.server.logs.rejections import Rejection, RejectionLog, spoken
from bookie.server.process.repeating import Repeating
from bookie.server.requests.authentication import Authentication, UserCounts
from bookie.server.requests.bookie_info import BookieInfo, Load
from bookie.server.requests.entry_list import EntryList
from bookie.server.requests.workers import Answer, PolicyWorkers
from bookie.storage.essential_threads import EssentialThreads
from bookie.storage.ledger_storage import LedgerStorage

if TYPE_CHECKING:
    from bookie.server.tls.contexts import TlsContexts  # at run time only a bookie with TLS loads OpenSSL

__all__ = ["DataPort"]

OPEN_DOOR = (
    "the data port has no authentication: every client that reaches it can read and write every ledger;"
    " set bookieAuthProviderFactoryClass, or restrict access by a firewall"
)

NO_TLS = {"tls_handshakes": 0, "tls_handshakes_failed": 0}
"""A bookie without TLS has these counters too."""

log = logging.getLogger(__name__)


class DataPort:
    """Serves the wire protocol on one address. Call `start`, then `stop` (idempotent), while the storage runs."""

    def __init__(
        self,
        storage: LedgerStorage,
        settings: NetworkSettings,
        provider: ServerProvider | None = None,
        tls: "TlsContexts | None" = None,
    ) -> None:
        self.storage = storage
        self.settings = settings
        self.provider = provider
        self.tls = tls
        self._listener: socket.socket | None = None
        self._loops: list[IoLoopRunner] = []
        self._threads = EssentialThreads()
        self._limits: PortLimits | None = None
        self._rejections = RejectionLog(self._rejected, self._tell)
        self._access = AccessLog(settings) if settings.access_log else None
        self._workers: PolicyWorkers | None = None
        self._policy_threads = EssentialThreads()
        self._auth_files = Repeating("auth-files", settings.auth_refresh_s, self.refresh)

    def start(self) -> tuple[str, int]:
        """Bind, listen and serve, and return the bound (host, port). Raises StartRefused if binding fails."""
        settings = self.settings
        stores, pool = self.storage.stores, self.storage.pool
        if stores is None or pool is None:
            raise RuntimeError("the storage is not started")
        self._listener = self._listen()
        loops = settings.io_threads or cores()
        self._limits = PortLimits(
            settings.values(
                throttle_ms_max=self.storage.storage.throttle_ms_max,
                loops=loops,
                authenticate=self.provider is not None,
                tls_required=self.tls is not None and self.tls.settings.required,
                clear_login=self.tls is None or self.tls.settings.clear_login,
            )
        )
        self._workers = self._make_workers(stores)
        access = self._access.buffer if self._access is not None else None
        self._loops = [
            IoLoopRunner(stores, pool, self._limits, self._workers.queue, access=access) for _ in range(loops)
        ]
        self._loops[0].listen(self._listener.fileno(), self._loops)
        self._loops += self._sealed_loops(stores, pool, self._limits, self._workers.queue)
        for index, loop in enumerate(self._loops):
            self._threads.spawn(f"io-{index}", loop.run)
        for index in range(settings.policy_threads):
            self._policy_threads.spawn(f"policy-{index}", partial(self._workers.run, REQUESTS), carries_data=False)
            if self.provider is not None:
                self._policy_threads.spawn(f"login-{index}", partial(self._workers.run, LOGINS), carries_data=False)
        self._rejections.start()
        if self.provider is not None and settings.auth_refresh_s:
            self._auth_files.start()
        if self._access is not None:
            self._access.start()
        host, port = self._listener.getsockname()[:2]
        if self.provider is None and not is_loopback(host):
            log.warning(OPEN_DOOR, extra={"host": host, "port": port})
        return host, port

    def _sealed_loops(
        self, stores: StorageEngine, pool: ReadPoolWorkers, limits: PortLimits, policy: PolicyRequests
    ) -> list[IoLoopRunner]:
        """Return loops for TLS, to which the others move connections after START_TLS; none if TLS is not configured."""
        if self.tls is None:
            return []
        threads = self.tls.settings.io_threads
        access = self._access.buffer if self._access is not None else None
        sealed = [IoLoopRunner(stores, pool, limits, policy, self.tls.server_context, access) for _ in range(threads)]
        for loop in self._loops:
            loop.move_encrypted_to(sealed)
        self.tls.start()
        return sealed

    def _listen(self) -> socket.socket:
        host, port = self.settings.host, self.settings.port
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.socket(family, socket.SOCK_STREAM)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((host, port))
            listener.listen(self.settings.backlog)
            listener.setblocking(False)
        except OSError as error:
            listener.close()
            raise StartRefused(
                f"cannot listen on {host}:{port} ({error.strerror}); free the port or set another bookiePort"
            ) from error
        return listener

    def _make_workers(self, stores: StorageEngine) -> PolicyWorkers:
        settings = self.settings
        queue = PolicyRequests(
            jobs_max=settings.policy_queue_max,
            bytes_max=settings.policy_bytes_max // 2,
            frame_bytes_max=settings.auth_bytes_max,
        )
        answers: dict[int, Answer] = {
            wire.GET_BOOKIE_INFO: BookieInfo(self.storage.storage.ledger_directories, load=self._load),
            wire.GET_LIST_OF_ENTRIES_OF_LEDGER: EntryList(stores, settings.frame_bytes_max),
        }
        return PolicyWorkers(queue, answers, Authentication(self.provider) if self.provider else None)

    def _load(self) -> Load:
        stats = self.storage.stats()
        return Load(int(stats["adds"]), int(stats["journal_queued_bytes"]), self.storage.read_only)

    def threads(self) -> tuple[threading.Thread, ...]:
        """Return the essential threads; none of them may end before `stop`."""
        return (*self._threads, *self._policy_threads)

    def stop(self, grace_s: float) -> None:
        """Stop accepting and reading, send pending responses within `grace_s` seconds, and close every connection."""
        if self._listener is None:
            return
        for loop in self._loops:
            loop.stop(False)
        deadline = time.monotonic() + grace_s
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        for loop in self._loops:
            loop.stop(True)
        self._threads.join()
        self._auth_files.stop()
        self._stop_workers()
        self._rejections.stop()
        if self._access is not None:
            self._access.stop()
        if self.tls is not None:
            self.tls.stop()
        self._listener.close()
        self._listener = None

    def _stop_workers(self) -> None:
        """Stop the policy threads. The loops have ended, so nobody receives their responses any more."""
        if self._workers is not None:
            self._workers.queue.stop()
        self._policy_threads.join()

    def hurry(self) -> None:
        """Let a running or later `stop` close every connection at once. Any thread."""
        for loop in self._loops:
            loop.stop(True)

    def close(self) -> None:
        """Free the loops, after this port and the storage, whose threads wake them, have stopped."""
        for loop in self._loops:
            loop.close()
        self._loops.clear()

    def _tell(self) -> None:
        self.storage.tell_damage()
        if self._workers is not None:
            self._workers.tell()

    def _rejected(self) -> list[Rejection]:
        rows = (row for loop in self._loops for row in loop.rejections())
        found = [(spoken(ip), (*REASON_TEXTS, UNNAMED)[reason], times) for ip, reason, times in rows]
        return found + self._workers.refused_logins() if self._workers is not None else found

    def refresh(self) -> None:
        """Check now whether authentication files have changed, and close connections that are no longer valid."""
        if self._workers is not None and self._limits is not None and self._workers.refresh():
            self._limits.revoke()
            for loop in self._loops:
                loop.wake()

    def users(self) -> list[UserCounts]:
        """Return the counts of authenticated users, by name."""
        return self._workers.users() if self._workers is not None else []

    def batches(self) -> tuple[BatchView, BatchView]:
        """Return the batch reads that failed, and those that succeeded, in the histograms of BP-62:
        `bookkeeper_server_BATCH_READ_ENTRY_REQUEST` (ms) and `…_RESPONSE_SIZE` (bytes of the frame).
        """
        failed, well = zip(tally(()), *(loop.batches() for loop in self._loops), strict=True)
        return merged(failed), merged(well)

    def ops(self) -> list[tuple[dict[str, tuple[OpView, OpView]], list[OpView]]]:
        """Return the request times of each loop in ns: by name, failed and successful, and of adds by journal."""
        return [loop.ops() for loop in list(self._loops)]

    def directories(self) -> list[list[DirectoryView]]:
        """Return the times of adds and reads in ns, and bytes of entries, by loop, then by ledger directory."""
        return [loop.directories() for loop in list(self._loops)]

    def stats(self) -> dict[str, int]:
        """Return counters summed over the loops; `errors_<status>` are refusals, `turned_away_<reason>` peers."""
        total: dict[str, int] = dict(self._limits.stats()) if self._limits is not None else {}
        total |= self._workers.stats() if self._workers is not None else {}
        total |= self.tls.server_context.stats() if self.tls is not None else NO_TLS
        total |= self._access.buffer.stats() if self._access is not None else {}
        for loop in self._loops:
            for name, value in loop.stats().items():
                each = (
                    {f"{name}_{at}": count for at, count in enumerate(value)}
                    if isinstance(value, list)
                    else {name: value}
                )
                for key, count in each.items():
                    total[key] = total.get(key, 0) + count
        return total
