"""GET_BOOKIE_INFO: the size of the ledger disks, the free space on them, and the load. Any thread."""

import logging
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from bookie.log_throttle import LogThrottle
from bookie.pb import wire_pb2 as wire
from bookie.server.requests import replies

__all__ = ["BookieInfo", "capacity", "Capacity", "Load"]

TOTAL, FREE, LOAD = 1, 2, 256
"""Bits of `requested`."""

log = logging.getLogger(__name__)
log.addFilter(LogThrottle())  # peers can cause these lines


class Capacity(NamedTuple):
    """Sizes in bytes; `free` is what an ordinary user may still write."""

    total: int
    free: int


class Load(NamedTuple):
    """The entries added since the start, the bytes that wait for the journal, and whether the bookie is read-only."""

    adds: int
    journal_queue_bytes: int
    read_only: bool


def capacity(directories: Sequence[Path]) -> Capacity:
    """Return the capacity of all directories, each file system counted once. Raises OSError if a query fails."""
    total = free = 0
    seen: set[int] = set()
    for directory in directories:
        device = directory.stat().st_dev
        if device in seen:
            continue
        seen.add(device)
        status = os.statvfs(directory)
        total += status.f_blocks * status.f_frsize
        free += status.f_bavail * status.f_frsize
    return Capacity(total, free)


class BookieInfo:
    """Answers for `directories`. The load is told only to peers that ask for it, none of which are Java's."""

    def __init__(
        self,
        directories: Sequence[Path],
        measure: Callable[[Sequence[Path]], Capacity] = capacity,
        load: Callable[[], Load] | None = None,
    ) -> None:
        self._directories = tuple(directories)
        self._measure = measure
        self._load = load
        self._began = time.monotonic()

    def __call__(self, request: wire.Request) -> bytes:
        """Return the response to one request."""
        if not request.HasField("getBookieInfoRequest"):
            return replies.answer(request, replies.EBADREQ)
        part = wire.GetBookieInfoResponse(status=replies.EOK)
        if not replies.right_version(request):
            part.status = replies.EBADVERSION
        else:
            self._fill(part, request.getBookieInfoRequest.requested)
        return replies.answer(request, part.status, getBookieInfoResponse=part)

    def _fill(self, part: wire.GetBookieInfoResponse, requested: int) -> None:
        try:
            found = self._measure(self._directories)
        except OSError as error:
            log.error("the size of a ledger directory cannot be queried", extra={"error": str(error)})
            part.status = replies.EIO
            return
        if requested & TOTAL:
            part.totalDiskCapacity = found.total
        if requested & FREE:
            part.freeDiskSpace = found.free
        if requested > 0 and requested & LOAD and self._load is not None:
            part.adds, part.journalQueueBytes, part.readOnly = self._load()
            part.uptimeMillis = max(round((time.monotonic() - self._began) * 1000), 1)
