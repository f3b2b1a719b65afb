"""The connection to ZooKeeper. Every request goes through `run`, which handles lost answers.

kazoo owns two threads: one for the socket, one for callbacks. Requests are sent on the caller's thread, which waits.
When the session expires, kazoo opens a new one by itself; owners of ephemeral nodes are notified and create them
again.
"""

import logging
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import (
    ConnectionLoss,
    KazooException,
    NoNodeError,
    OperationTimeoutError,
    SessionExpiredError,
    WriterNotClosedException,
)
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.retry import KazooRetry
from kazoo.security import CREATOR_ALL_ACL, OPEN_ACL_UNSAFE

from bookie.errors import BookKeeperError, MetadataStoreError
from bookie.log_throttle import LogThrottle

T = TypeVar("T")
LOST_ANSWER = (ConnectionLoss, OperationTimeoutError, SessionExpiredError)
RECONNECT_DELAY_S_MAX = 1.0
POLL_S = 0.05
RECONNECT_LOG_S = 60.0
log = logging.getLogger(__name__)
kazoo_log = logging.getLogger(f"{__name__}.kazoo")
kazoo_log.addFilter(LogThrottle(RECONNECT_LOG_S))  # in an outage kazoo logs each attempt to connect


class ZooKeeperSession:
    """One session at a time, renewed until it is stopped."""

    def __init__(self, hosts: tuple[str, ...], *, timeout_s: float, secure: bool) -> None:
        self.hosts = ",".join(hosts)
        self.timeout_s = timeout_s
        self.acl = CREATOR_ALL_ACL if secure else OPEN_ACL_UNSAFE
        self._loss_listeners: list[Callable[[], None]] = []
        self._connect_listeners: list[Callable[[], None]] = []
        self._stopped = threading.Event()
        self.client: Any = None
        self.id = 0
        """The `ephemeralOwner` of our own nodes; 0 while there is no session. A session survives a lost connection."""

    def start(self) -> None:
        """Connect. Raises MetadataStoreError if no server answers within the session timeout."""
        if self.client is not None:
            return
        reconnect = KazooRetry(max_tries=-1, delay=0.1, backoff=2, max_delay=RECONNECT_DELAY_S_MAX)
        client = KazooClient(
            hosts=self.hosts,
            timeout=self.timeout_s,
            default_acl=self.acl,
            connection_retry=reconnect,
            logger=kazoo_log,
        )
        client.add_listener(lambda state: self._state_changed(client, state))
        try:
            client.start(timeout=self.timeout_s)
        except KazooTimeoutError as error:
            raise MetadataStoreError(
                f"ZooKeeper {self.hosts} did not answer within {self.timeout_s:g} s: "
                "check metadataServiceUri and that the server runs"
            ) from error
        self.client = client

    def refuse(self) -> None:
        """Let no request wait for a connection any more."""
        self._stopped.set()

    def stop(self) -> None:
        """End the session. ZooKeeper deletes our ephemeral nodes at once, or at the timeout if it cannot be reached."""
        self.refuse()
        if self.client is None:
            return
        try:
            self.client.stop()
        except WriterNotClosedException as error:  # the server accepts nothing; kazoo's thread goes on retrying
            log.warning("cannot close the session hosts=%s error=%s", self.hosts, error)
            return
        self.client.close()

    def on_loss(self, listener: Callable[[], None]) -> None:
        """Call `listener` on kazoo's thread when a session has expired; it must not block."""
        self._loss_listeners.append(listener)

    def on_connect(self, listener: Callable[[], None]) -> None:
        """Call `listener` on kazoo's thread after every connection; it must not block."""
        self._connect_listeners.append(listener)

    def read(self, path: str) -> bytes | None:
        """Return a node's data, or None if there is no such node."""
        try:
            data, _ = self.run(lambda zk: zk.get_async(path))
        except NoNodeError:
            return None
        return bytes(data)

    def run(
        self,
        request: Callable[[Any], Any],
        settle: Callable[[KazooException], T] | None = None,
        *,
        patience_s: float | None = None,
    ) -> Any:
        """Send `request(client)`, an asynchronous kazoo call, and wait for its answer. Repeat it after a lost
        connection.

        Refusals of ZooKeeper are raised as kazoo's exceptions. If an earlier answer was lost, a refusal may be due to
        our own success; `settle(refusal)` then decides, and returns the result or raises. Raises MetadataStoreError
        if no answer came within `patience_s`, by default the session timeout.
        """
        deadline = time.monotonic() + (patience_s or self.timeout_s)
        answer_lost = False
        while True:
            self._wait_connected(deadline)
            try:
                return request(self.client).get(timeout=max(deadline - time.monotonic(), POLL_S))
            except (*LOST_ANSWER, KazooTimeoutError) as error:
                answer_lost = True
                log.info("answer lost, repeating the request hosts=%s error=%r", self.hosts, error)
            except KazooException as refusal:
                if answer_lost and settle is not None:
                    return settle(refusal)
                raise

    def _wait_connected(self, deadline: float) -> None:
        while not self.client.connected:
            if self._stopped.is_set():
                raise BookKeeperError(f"the session with ZooKeeper {self.hosts} is stopped")
            left = deadline - time.monotonic()
            if left <= 0:
                break
            self._stopped.wait(min(left, POLL_S))
        if time.monotonic() >= deadline:
            raise MetadataStoreError(f"ZooKeeper {self.hosts} did not answer in time (session of {self.timeout_s:g} s)")

    def _state_changed(self, client: Any, state: str) -> None:
        log.info("session state=%s hosts=%s", state, self.hosts)
        if state == KazooState.LOST:
            self.id = 0
            if not self._stopped.is_set():
                for listener in self._loss_listeners:
                    listener()
        if state == KazooState.CONNECTED:
            self.id = int(client.client_id[0])
            for listener in self._connect_listeners:
                listener()
