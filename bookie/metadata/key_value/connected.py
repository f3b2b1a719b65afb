"""What connections to a store in another process have in common: calls that are repeated after a lost answer, a
session that is kept alive, and listeners. `remote` and the driver for etcd use it.

Calls run on the caller's thread. Two daemon threads belong to a connection: one keeps the session alive and opens
another one when it was lost, the other follows the stream of changes.
"""

import logging
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import grpc

from bookie.errors import BookKeeperError, SecurityError
from bookie.metadata.key_value.keys import NO_SESSION, SessionExpired, Watchers
from bookie.metadata.patience import NoAnswer, Patience

__all__ = ["ConnectedStore", "LOST_ANSWER", "NotPermitted", "RETRY_S"]

RETRY_S = 0.1
KEEP_ALIVES_PER_TTL = 4
JOIN_S = 0.2
"""How long a call that runs when the connection is stopped may still take, in seconds."""
CLOSED = "closed channel"
"""What gRPC says, as a ValueError, of a call on a channel that was closed meanwhile."""
LOST_ANSWER = {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED}
log = logging.getLogger(__name__)


class NotPermitted(SecurityError):
    """The store knows the caller, but its role does not permit this call."""


class ConnectedStore(ABC):
    """A connection to the store `name`, with a session that the store ends after `session_timeout_s` of silence."""

    def __init__(self, name: str, *, session_timeout_s: float) -> None:
        self._name = name
        self._timeout_s = session_timeout_s
        self._patience = Patience(session_timeout_s)
        self._session = NO_SESSION
        self._stopping = threading.Event()
        self._cutter: threading.Timer | None = None
        self._loss_listeners: list[Callable[[], None]] = []
        self._interruption_listeners: list[Callable[[], None]] = []
        self._watchers = Watchers()
        self._keeper = threading.Thread(target=self._keep_alive, name="metadata-session", daemon=True)
        self._follower = threading.Thread(target=self._follow, name="metadata-changes", daemon=True)

    # What a kind of store defines

    @abstractmethod
    def _open_session(self) -> int:
        """Open a session with the store, and return it."""

    @abstractmethod
    def _keep_session(self) -> None:
        """Keep the session alive. Raises SessionExpired if the store does not know it."""

    @abstractmethod
    def _refusal(self, error: grpc.RpcError) -> BookKeeperError | None:
        """Return what the store's refusal means, or None if the answer was lost or the call may be repeated."""

    @abstractmethod
    def _follow(self) -> None:
        """Tell the watchers of every change until the connection is stopped. Runs on the thread of changes."""

    @abstractmethod
    def _cut(self) -> None:
        """End all calls and streams under way, as if the connection were lost; further ones get a new connection."""

    # Sessions and listeners

    def watch(self, touched: Callable[[str], None]) -> Callable[[], None]:
        return self._watchers.add(touched)

    def session(self) -> int:
        return self._session

    def on_session_loss(self, listener: Callable[[], None]) -> None:
        self._loss_listeners.append(listener)

    def on_interruption(self, listener: Callable[[], None]) -> None:
        self._interruption_listeners.append(listener)

    def _interrupted(self) -> None:
        for listener in self._interruption_listeners:
            listener()

    def hurry(self, patience_s: float) -> None:
        """Let calls wait for this long at most, as the process is about to end: `Patience` says more."""
        self._patience.hurry(patience_s)
        if self._cutter is None and self._follower.is_alive():  # a call that waits has the time it was given
            self._cutter = threading.Timer(patience_s, self._cut)
            self._cutter.name, self._cutter.daemon = "metadata-hurry", True
            self._cutter.start()

    def _join(self) -> None:
        """Wait for the threads, after `_stopping` was set and the stream was ended. A call that the store does not
        answer is not waited for.
        """
        threads = [one for one in (self._cutter, self._keeper, self._follower) if one is not None and one.is_alive()]
        if self._cutter is not None:
            self._cutter.cancel()
        deadline = time.monotonic() + JOIN_S
        for thread in threads:
            thread.join(max(deadline - time.monotonic(), 0))
        if any(thread.is_alive() for thread in threads):
            self._cut()
            for thread in threads:
                thread.join()

    # Calls

    def _call(
        self,
        method: Callable[..., Any],
        request: object,
        settle: Callable[[BookKeeperError], object] | None = None,
        *,
        attempt_s: float | None = None,
    ) -> Any:
        """Call a method, and repeat it after a lost answer until the session timeout has passed, or the patience ends.

        Args:
            method: What is called with the request and a timeout in seconds.
            request: The message to send.
            settle: Judges a refusal that may be due to our own earlier success; returns the result or raises it.
            attempt_s: The longest time that one attempt may take; without it, an attempt takes all that is left.

        Raises:
            NoAnswer: The store did not answer in time.
            BookKeeperError: The store refused.
        """
        begun = time.monotonic()
        answer_lost, why = False, ""
        while True:
            left = self._patience.left(begun)
            if self._stopping.is_set():
                raise NoAnswer(f"metadata store {self._name} did not answer before the connection was stopped{why}")
            if left <= 0:
                check = f"check metadataServiceUri and that the process with the store runs{why}"
                raise self._patience.no_answer(f"metadata store {self._name}", begun, check)
            try:
                return method(request, timeout=left if attempt_s is None else min(left, attempt_s))
            except grpc.RpcError as error:
                refusal = self._refusal(error)
                if refusal is None:
                    answer_lost |= self._may_have_worked(error)
                    why = f" ({' '.join((error.details() or '').split())})"
                    self._stopping.wait(min(RETRY_S, left))
                    continue
                if answer_lost and settle is not None:
                    return settle(refusal)
                raise refusal from error
            except ValueError as error:
                if CLOSED not in str(error):
                    raise
                self._stopping.wait(min(RETRY_S, left))  # `_cut` was called before it was sent

    def _may_have_worked(self, error: grpc.RpcError) -> bool:  # noqa: ARG002 - a kind of store may know better
        """Return whether a call that is repeated after `error` may have had its effect already."""
        return True

    # The session

    def _keep_alive(self) -> None:
        due_s = self._timeout_s / KEEP_ALIVES_PER_TTL
        late = False
        while not self._stopping.wait(due_s):
            began = time.monotonic()
            try:
                self._keep_session()
                if late or time.monotonic() - began > due_s:  # the store may have stalled for others, too
                    self._interrupted()
                late = False
            except SessionExpired:
                self._renew_session()
            except BookKeeperError as error:
                late = True
                if self._stopping.is_set():
                    return
                log.warning("cannot keep the session alive target=%s error=%s", self._name, error)

    def _renew_session(self) -> None:
        try:
            self._session = self._open_session()
        except BookKeeperError as error:  # the old session is still unknown, so the next keep-alive tries again
            log.warning("cannot open a new session target=%s error=%s", self._name, error)
            return
        log.warning("session expired, opened a new one target=%s", self._name)
        self._interrupted()
        for listener in self._loss_listeners:
            listener()
