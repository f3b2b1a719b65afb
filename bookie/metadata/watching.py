"""The thread of a driver that reads what changed and calls the listeners.

Stores only say *that* something changed; a listener gets a value that was read afterwards. Changes may therefore be
merged, but the last state is always delivered, also after an outage. Listeners run on the watch thread and must be
quick.
"""

import logging
import threading
import time
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from bookie.errors import BookKeeperError

T = TypeVar("T")
RETRY_S = 0.2
UNKNOWN: Any = object()
log = logging.getLogger(__name__)


class Watch(Generic[T]):
    """A listener's subscription. `read` gets the watch as its argument, so that it can set the store's own watch
    with `touch`.
    """

    def __init__(
        self, watcher: "Watcher", read: "Callable[[Watch[T]], T]", listener: Callable[[T], None], topic: str
    ) -> None:
        self.topic = topic
        self._watcher = watcher
        self._read = read
        self._listener = listener
        self._last: T = UNKNOWN  # used on the watch thread only

    def touch(self, *_event: object) -> None:
        """Note that the state may have changed. Any thread; it never blocks for long."""
        self._watcher.wake(self)

    def close(self) -> None:
        """End the subscription. No listener call begins after this has returned, except on the watch thread itself."""
        self._watcher.remove(self)

    def refresh(self) -> None:
        """Read the value, and call the listener if it differs from the last one. Watch thread."""
        value = self._read(self)
        if value != self._last:
            self._last = value
            self._listener(value)


class Watcher:
    """The watch thread and its subscriptions."""

    def __init__(self, name: str) -> None:
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._change = threading.Condition()
        # The fields below are guarded by _change.
        self._watches: dict[Watch[Any], None] = {}  # in the order in which they were added
        self._due: dict[Watch[Any], float] = {}
        self._busy: Watch[Any] | None = None
        self._stopping = False

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        with self._change:
            self._stopping = True
            self._change.notify_all()
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join()

    def add(self, read: Callable[[Watch[T]], T], listener: Callable[[T], None], topic: str = "") -> Watch[T]:
        """Subscribe. The listener is first called with the present state. `topic` is matched by `wake_topic`."""
        watch = Watch(self, read, listener, topic)
        with self._change:
            self._watches[watch] = None
        self.wake(watch)
        return watch

    def remove(self, watch: Watch[Any]) -> None:
        with self._change:
            self._watches.pop(watch, None)
            self._due.pop(watch, None)
            if threading.current_thread() is not self._thread:
                self._change.wait_for(lambda: self._busy is not watch)

    def wake(self, watch: Watch[Any], delay_s: float = 0.0) -> None:
        with self._change:
            if watch in self._watches:
                at = time.monotonic() + delay_s
                self._due[watch] = min(at, self._due.get(watch, at))
                self._change.notify_all()

    def wake_topic(self, key: str) -> None:
        """Wake every watch whose topic is a prefix of `key`; an empty key wakes all."""
        with self._change:
            watches = [watch for watch in self._watches if not key or key.startswith(watch.topic)]
        for watch in watches:
            self.wake(watch)

    def _run(self) -> None:
        while (watch := self._next()) is not None:
            try:
                watch.refresh()
            except BookKeeperError as error:
                log.warning("cannot read a watched value topic=%s error=%s", watch.topic, error)
                if error.retriable:
                    self.wake(watch, RETRY_S)
            except Exception:
                log.exception("the listener of a watch failed topic=%s", watch.topic)

    def _next(self) -> Watch[Any] | None:
        with self._change:
            self._busy = None
            self._change.notify_all()
            while not self._stopping:
                now = time.monotonic()
                watch = min(self._due, key=self._due.__getitem__, default=None)
                if watch is not None and self._due[watch] <= now:
                    del self._due[watch]
                    self._busy = watch
                    return watch
                self._change.wait(None if watch is None else self._due[watch] - now)
            return None
