"""The direct connections to one bookie: each is used by one thread at a time, and there are at most so many."""

import logging
import threading
import time
from weakref import WeakSet

from bookie._fast.client.direct_link import DirectLink
from bookie.client.direct.connect import DirectConnector, Endpoint
from bookie.errors import BookKeeperError

__all__ = ["DirectPool"]

AVOIDED_S = 5.0
"""How long a bookie that was late, or could not be connected, is not asked directly, in seconds."""
WAIT_S = 2.0
"""How long a call waits for a new connection at most, in seconds."""

log = logging.getLogger(__name__)


class DirectPool:
    """The direct connections to one bookie. Any thread."""

    def __init__(self, bookie: str, connector: DirectConnector, most: int) -> None:
        self.bookie = bookie
        self._connector = connector
        self._most = most
        self._idle: list[DirectLink] = []
        self._lock = threading.Lock()
        # The fields below are guarded by `_lock`; `_idle` is a stack that only single operations change.
        self._links: WeakSet[DirectLink] = WeakSet()  # an interrupted thread may drop one without giving it back
        self._connecting = 0
        self._late = False  # a connection is being established for which a caller has waited in vain
        self._avoided_until = 0.0
        self._closed = False
        self.endpoint: Endpoint | None = None
        """Where the bookie listens, once the event loop has connected to it."""

    @property
    def busy(self) -> int:
        """The number of connections that threads are using."""
        return max(len(self._links) - len(self._idle), 0)

    @property
    def may_owe(self) -> bool:
        """Whether a connection may be kept for a response that nobody waits for.

        Half of the connections are left to others, however slowly the bookie answers.
        """
        with self._lock:
            return sum(link.owed for link in self._links) < max(self._most // 2, 1)

    def take(self, limit_s: float) -> DirectLink | None:
        """Return a connection that no other thread uses, which must be given back; None if there is none to be had.

        A new one is established by a thread of its own, for which this waits `limit_s` seconds at most. If that takes
        longer, later calls use it, and those until then do not wait.
        """
        try:
            return self._idle.pop()
        except IndexError:
            established = self._begin(limit_s)
        if established is None or not limit_s:
            return None
        if not established.wait(min(limit_s, WAIT_S)):
            with self._lock:
                self._late = self._connecting > 0
        try:
            link = self._idle.pop()
        except IndexError:
            return None
        if self._closed:  # it was closed in the meantime
            self.give(link)
            return None
        return link

    def give(self, link: DirectLink) -> None:
        """Take a connection back, and close it if it cannot be used any more."""
        if link.usable and not self._closed:
            self._idle.append(link)
            return
        with self._lock:
            self._links.discard(link)
        link.close()

    def avoid(self) -> None:
        """Do not use the bookie for a while, since it was late."""
        with self._lock:
            self._avoided_until = time.monotonic() + AVOIDED_S

    def close(self) -> None:
        """End all connections, those that are in use, too. Further calls do nothing."""
        with self._lock:
            self._closed = True
            links = list(self._links)
            self._links.clear()
        self._idle.clear()
        for link in links:
            link.close()

    def _begin(self, limit_s: float) -> threading.Event | None:
        """Begin to establish a connection, and return what is set when that has ended; None if nothing was begun.

        Calls that do not wait begin one at a time.
        """
        endpoint = self.endpoint
        with self._lock:
            if endpoint is None or self._closed or time.monotonic() < self._avoided_until:
                return None
            if len(self._links) + self._connecting >= self._most or (self._connecting and (self._late or not limit_s)):
                return None
            self._connecting += 1
        ended = threading.Event()
        name = f"bookie-direct-{self.bookie}"
        try:
            threading.Thread(target=self._establish, args=(endpoint, ended), name=name, daemon=True).start()
        except RuntimeError as error:  # the interpreter exits, or there are too many threads
            self._established(None)
            log.info("no direct connection to bookieId=%s for a while: %s", self.bookie, error)
            return None
        return ended

    def _establish(self, endpoint: Endpoint, ended: threading.Event) -> None:
        link = None
        try:
            link = self._connector.connect(endpoint)
        except BookKeeperError as error:
            log.info("no direct connection to bookieId=%s for a while: %s", self.bookie, error)
        finally:
            self._established(link)
            ended.set()

    def _established(self, link: DirectLink | None) -> None:
        """Note how an attempt has ended."""
        with self._lock:
            self._connecting -= 1
            self._late = self._late and self._connecting > 0
            if link is None:
                self._avoided_until = time.monotonic() + AVOIDED_S
            else:
                self._links.add(link)
        if link is not None:
            self.give(link)
