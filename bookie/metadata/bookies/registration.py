"""Keep a bookie's registered mode equal to its real one, whatever happens to the metadata store.

`start` registers on the caller's thread, and raises if that fails. From then on one thread compares the store with
the wanted mode after every change of mode, after every lost session, and at least every `CHECK_S` seconds, and
repairs it.
"""

import logging
import threading
from collections.abc import Callable

from bookie.errors import BookieAlreadyRegistered, BookKeeperError, MetadataSessionLost
from bookie.metadata.driver import Registrations

CHECK_S = 3.0
BACKOFF_START_S = 0.2
BACKOFF_MAX_S = 2.0
FOR_EVER = -1
STOP_S = 2.0
log = logging.getLogger(__name__)


class BookieRegistration:
    """The registration of one bookie in one store.

    `info` is what the bookie publishes. `on_give_up` is called once, on the registration thread, with the error to
    end by, if `retries_max` attempts to repair the registration have failed (-1 means no limit), or if another
    process took the id.
    """

    def __init__(
        self,
        registrations: Registrations,
        bookie_id: str,
        info: bytes,
        *,
        on_give_up: Callable[[BookKeeperError], None],
        retries_max: int = FOR_EVER,
        backoff_start_s: float = BACKOFF_START_S,
        backoff_max_s: float = BACKOFF_MAX_S,
        check_s: float = CHECK_S,
    ) -> None:
        self._registrations = registrations
        self._bookie_id = bookie_id
        self._info = info
        self._on_give_up = on_give_up
        self._retries_max = retries_max
        self._backoff_start_s = backoff_start_s
        self._backoff_max_s = backoff_max_s
        self._check_s = check_s
        self._thread = threading.Thread(target=self._run, name="registration", daemon=True)
        self._change = threading.Condition()
        # The fields below are guarded by _change.
        self._read_only = False
        self._due = False
        self._settled = False
        self._stopping = False

    def start(self, *, read_only: bool) -> None:
        """Register the bookie and start the thread. Raises BookieAlreadyRegistered or MetadataStoreError."""
        self._read_only = read_only
        self._registrations.register(self._bookie_id, self._info, read_only=read_only)
        self._settled = True
        self._registrations.on_session_loss(self.check)
        self._thread.start()
        log.info("registered bookieId=%s readOnly=%s", self._bookie_id, read_only)

    def stop(self) -> None:
        """Unregister the bookie and end the thread; idempotent. A store that does not answer drops the registration
        by itself.
        """
        with self._change:
            if self._stopping:
                return
            self._stopping = True
            self._change.notify_all()
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join(STOP_S)  # it may be waiting for a store that does not answer
        try:
            self._registrations.unregister(self._bookie_id)
        except BookKeeperError as error:
            log.warning("cannot unregister bookieId=%s error=%s", self._bookie_id, error)

    def set_read_only(self, read_only: bool) -> None:  # noqa: FBT001  (the mode is the call's only meaning)
        """Request the other mode, without waiting for it."""
        with self._change:
            self._read_only = read_only
            self._settled = False
        self.check()

    def check(self) -> None:
        """Compare with the store soon. Any thread; it never blocks for long."""
        with self._change:
            self._due = True
            self._change.notify_all()

    def wait_settled(self, timeout_s: float) -> bool:
        """Return whether the store had the wanted mode within `timeout_s` seconds."""
        with self._change:
            return self._change.wait_for(lambda: self._settled, timeout_s)

    def _run(self) -> None:
        failures = 0
        while (read_only := self._next(self._pause_s(failures))) is not None:
            try:
                self._repair(read_only=read_only)
                failures = 0
            except BookieAlreadyRegistered as error:
                self._give_up(error)
                return
            except BookKeeperError as error:
                failures += 1
                log.warning("registration failed bookieId=%s failures=%d error=%s", self._bookie_id, failures, error)
                if self._retries_max != FOR_EVER and failures > self._retries_max:
                    why = f"bookie {self._bookie_id} could not register again in {failures} attempts: {error}"
                    self._give_up(MetadataSessionLost(why))
                    return

    def _give_up(self, error: BookKeeperError) -> None:
        if not self._stopping:
            self._on_give_up(error)

    def _pause_s(self, failures: int) -> float:
        if failures == 0:
            return self._check_s
        return float(min(self._backoff_start_s * 2 ** min(failures - 1, 32), self._backoff_max_s))

    def _next(self, wait_s: float) -> bool | None:
        """Sleep until there is something to do. Returns the wanted mode, or None when stopping."""
        with self._change:
            self._change.wait_for(lambda: self._due or self._stopping, wait_s)
            self._due = False
            return None if self._stopping else self._read_only

    def _repair(self, *, read_only: bool) -> None:
        if not self._registrations.is_registered(self._bookie_id, read_only=read_only):
            with self._change:
                self._settled = False
            self._registrations.register(self._bookie_id, self._info, read_only=read_only)
            log.warning("registered again bookieId=%s readOnly=%s", self._bookie_id, read_only)
        with self._change:
            self._settled = self._read_only == read_only
            self._change.notify_all()
