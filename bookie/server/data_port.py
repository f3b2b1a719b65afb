"""The data port: the listening socket and the I/O loops behind it. Bytes never pass through Python."""

import logging
import socket
import threading
import time

from bookie._fast import fatal
from bookie._fast.io_loop import IoLoopRoom
from bookie._fast.net_limits import NetLimitsRoom
from bookie._fast.scheduling import wish_short_slice
from bookie.errors import StartRefused
from bookie.server.complaints import Complaint, ComplaintLog
from bookie.server.settings import NetworkSettings, cores
from bookie.storage.ledger_storage import LedgerStorage

__all__ = ["DataPort"]

FILES = 64
"""Descriptors of journals, index, metadata store and planes, beside the entry logs that are open for reads."""

log = logging.getLogger(__name__)


class DataPort:
    """Serves the wire protocol on one address. `start`, then `stop` (idempotent); the storage runs before and after."""

    def __init__(self, storage: LedgerStorage, settings: NetworkSettings) -> None:
        self.storage = storage
        self.settings = settings
        self._listener: socket.socket | None = None
        self._loops: list[IoLoopRoom] = []
        self._threads: list[threading.Thread] = []
        self._limits: NetLimitsRoom | None = None
        self._complaints = ComplaintLog(self._complained)

    def start(self) -> tuple[str, int]:
        """Bind, listen and serve; return the bound (host, port). StartRefused when the address cannot be had."""
        settings = self.settings
        stores, pool = self.storage.stores, self.storage.pool
        if stores is None or pool is None:
            raise RuntimeError("the storage is not started")
        self._listener = self._listen()
        self._limits = NetLimitsRoom(
            frame_bytes_max=settings.frame_bytes_max,
            batch_bytes_max=settings.batch_bytes_max,
            output_high=settings.output_high_bytes,
            output_low=settings.output_low_bytes,
            output_bytes_max=settings.output_bytes_max,
            input_bytes_max=settings.input_bytes_max,
            connections_max=settings.connections_max,
            fd_reserve=self.storage.storage.open_logs_max + FILES,
            throttle_ms=self.storage.storage.throttle_ms_max,
            spin_us=settings.spin_us,
            nodelay=settings.tcp_nodelay,
            keepalive=settings.keepalive,
            linger_s=settings.linger_s,
            connections_per_address_max=settings.connections_per_address_max,
            unauthenticated_ms=settings.unauthenticated_ms_max,
            idle_ms=settings.idle_ms_max,
            long_polls_max=settings.long_polls_max,
            long_polls_per_connection_max=settings.long_polls_per_connection_max,
        )
        self._loops = [IoLoopRoom(stores, pool, self._limits) for _ in range(settings.io_threads or cores())]
        self._loops[0].listen(self._listener.fileno(), self._loops)
        for index, loop in enumerate(self._loops):
            thread = threading.Thread(target=self._run, args=(loop, index), name=f"io-{index}", daemon=True)
            self._threads.append(thread)
            thread.start()
        self._complaints.start()
        host, port = self._listener.getsockname()[:2]
        return host, port

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

    def _run(self, loop: IoLoopRoom, index: int) -> None:
        try:
            wish_short_slice()
            loop.run()
        except BaseException as error:
            log.exception("I/O loop died loop=%d", index)
            fatal.trip(f"I/O loop {index} died: {error}")

    def threads(self) -> tuple[threading.Thread, ...]:
        """The essential threads: none may end before `stop`."""
        return tuple(self._threads)

    def stop(self, grace_s: float) -> None:
        """Stop accepting and reading, send what is owed within `grace_s` seconds, close every connection."""
        if self._listener is None:
            return
        for loop in self._loops:
            loop.stop(False)
        deadline = time.monotonic() + grace_s
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        for loop in self._loops:
            loop.stop(True)
        for thread in self._threads:
            thread.join()
        self._complaints.stop()
        self._listener.close()
        self._listener = None

    def hurry(self) -> None:
        """Let a running or coming `stop` close every connection at once. Any thread."""
        for loop in self._loops:
            loop.stop(True)

    def close(self) -> None:
        """Free the loops. Both this port and the storage, whose threads wake them, have stopped."""
        for loop in self._loops:
            loop.close()
        self._loops.clear()

    def _complained(self) -> list[Complaint]:
        return [complaint for loop in self._loops for complaint in loop.complaints()]

    def stats(self) -> dict[str, int]:
        """Counters summed over the loops; refusals by status under `error_<status>`."""
        total: dict[str, int] = dict(self._limits.stats()) if self._limits is not None else {}
        for loop in self._loops:
            for name, value in loop.stats().items():
                if name == "errors":
                    for status, count in enumerate(value):
                        total[f"error_{status}"] = total.get(f"error_{status}", 0) + count
                else:
                    total[name] = total.get(name, 0) + value
        return total
