"""The connection to ZooKeeper. Every request goes through `run`, which handles lost answers.

kazoo owns two threads: one for the socket, one for callbacks. Requests are sent on the caller's thread, which waits.
When the session expires, kazoo opens a new one by itself; owners of ephemeral nodes are notified and create them
again.
"""

import logging
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
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

from bookie.errors import BookKeeperError
from bookie.log_throttle import LogThrottle
from bookie.metadata.patience import Patience

T = TypeVar("T")
LOST_ANSWER = (ConnectionLoss, OperationTimeoutError, SessionExpiredError)
RECONNECT_DELAY_S_MAX = 1.0
POLL_S = 0.05
LOOK_S = 0.5
"""How often a request that waits looks whether it still may."""
CLOSE_S = 1.0
"""How long the server has to answer that the session is closed."""
CUT_S = 1.0
"""How long kazoo's threads have to end once their socket was shut down."""
RECONNECT_LOG_S = 60.0
CHECK = "check metadataServiceUri and that the server runs"
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
        self._patience = Patience(timeout_s)
        self.client: Any = None
        self.id = 0
        """The `ephemeralOwner` of our own nodes; 0 while there is no session. A session survives a lost connection."""

    def start(self) -> None:
        """Connect. Raises NoAnswer if no server answers within the session timeout."""
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
        begun = time.monotonic()
        try:
            client.start(timeout=self.timeout_s)
        except KazooTimeoutError as error:
            raise self._patience.no_answer(f"ZooKeeper {self.hosts}", begun, CHECK) from error
        self.client = client

    def refuse(self) -> None:
        """Let no request wait for a connection any more."""
        self._stopped.set()

    def hurry(self, patience_s: float) -> None:
        """Let requests wait for this long at most, as the process is about to end: `Patience` says more."""
        self._patience.hurry(patience_s)

    def stop(self) -> None:
        """End the session. ZooKeeper deletes our ephemeral nodes at once, or at the timeout if it cannot be reached.

        kazoo would wait for a server that is silent, for the session timeout; we shut its socket down before.
        """
        self.refuse()
        if self.client is None:
            return
        closing = threading.Thread(target=self._close, name="zookeeper-close", daemon=True)
        closing.start()
        closing.join(CLOSE_S)
        if closing.is_alive():
            log.warning("cannot close the session, it will expire hosts=%s", self.hosts)
            _shut(self.client)
            closing.join(CUT_S)

    def _close(self) -> None:
        try:
            self.client.stop()
            self.client.close()
        except WriterNotClosedException as error:  # kazoo's thread goes on, in a connect that nothing can end
            log.warning("cannot close the session hosts=%s error=%s", self.hosts, error)

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
        our own success; `settle(refusal)` then decides, and returns the result or raises. Raises NoAnswer if no
        answer came within `patience_s`, by default the session timeout.
        """
        begun = time.monotonic()

        def left() -> float:
            return self._patience.left(begun, patience_s)

        answer_lost = False
        while True:
            self._wait_connected(left, begun)
            try:
                return self._answer(request(self.client), left)
            except (*LOST_ANSWER, KazooTimeoutError) as error:
                answer_lost = True
                log.info("answer lost, repeating the request hosts=%s error=%r", self.hosts, error)
            except KazooException as refusal:
                if answer_lost and settle is not None:
                    return settle(refusal)
                raise

    def _answer(self, sent: Any, left: Callable[[], float]) -> Any:
        """Wait for the answer to a request while there is time left, which may become less meanwhile."""
        while True:
            wait_s = max(left(), POLL_S)
            try:
                return sent.get(timeout=min(wait_s, LOOK_S))
            except KazooTimeoutError:
                if self._stopped.is_set():
                    raise BookKeeperError(f"the session with ZooKeeper {self.hosts} is stopped") from None
                if sent.ready() or left() <= 0:
                    raise

    def _wait_connected(self, left: Callable[[], float], begun: float) -> None:
        while not self.client.connected:
            if self._stopped.is_set():
                raise BookKeeperError(f"the session with ZooKeeper {self.hosts} is stopped")
            if (wait_s := left()) <= 0:
                break
            self._stopped.wait(min(wait_s, POLL_S))
        if left() <= 0:
            raise self._patience.no_answer(f"ZooKeeper {self.hosts}", begun, CHECK)

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


def _shut(client: Any) -> None:
    """End the connection of a client that was told to stop, so that its thread ends instead of waiting for answers."""
    connected = getattr(client._connection, "_socket", None)
    if connected is not None:
        with suppress(OSError):
            connected.shutdown(socket.SHUT_RDWR)
