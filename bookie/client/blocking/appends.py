"""Adds that are pending, as futures. Any thread."""

import contextlib
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from typing import Any

from bookie._fast.client.write_window import Add
from bookie.errors import ClientClosed, RequestTimeout

__all__ = ["Append", "finished"]

_making = threading.Lock()
_forks = 0
"""How often this process was forked from one that had this module."""


class Append(Future[int]):
    """A pending add: a future of the entry id, also for `concurrent.futures.wait` and `asyncio.wrap_future`.

    It cannot be cancelled. Its callbacks run on the client's thread, where calls that wait are refused.
    """

    # Most adds are only counted or waited for. What a future needs besides is made when it is first used: it costs
    # more than the add.

    _born = 0
    """`_forks` when it was made: nothing in a forked child ends an add of the parent's."""

    def __init__(self, add: Add) -> None:
        self._add = add
        if _forks:
            self._born = _forks

    def __getattr__(self, name: str) -> Any:
        if name not in {"_condition", "_state", "_result", "_exception", "_waiters", "_done_callbacks"}:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        with _making:
            if "_condition" not in self.__dict__:
                made: Future[int] = Future()
                condition = made.__dict__.pop("_condition")
                self.__dict__.update(made.__dict__, _condition=condition)
                self._add.tell(_Listener(self))
        if self._add.done():  # it ended before it was told to tell
            self._settle()
        return self.__dict__[name]

    def cancel(self) -> bool:
        """Return False: an entry that was sent cannot be taken back."""
        return False

    def cancelled(self) -> bool:
        """Return False; see `cancel`."""
        return False

    def running(self) -> bool:
        """Return whether the add is neither acknowledged nor failed."""
        return not self._add.done()

    def done(self) -> bool:
        """Return whether the add was acknowledged or has failed."""
        return self._add.done()

    def result(self, timeout: float | None = None) -> int:
        """Wait until the add is acknowledged.

        Args:
            timeout: How many seconds to wait at most; None means no limit.

        Returns:
            The entry id.

        Raises:
            RequestTimeout: The add was not acknowledged within `timeout`. It may be acknowledged later.
            ClientClosed: The client was closed, or this is a forked child of the process that added the entry.
            BookKeeperError: The error that ended the add; `WriteHandle.append` lists them.
        """
        self._refuse_in_child()
        return finished(self._add, timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Wait until the add is acknowledged or has failed.

        Args:
            timeout: How many seconds to wait at most; None means no limit.

        Returns:
            The error that ended the add, or None if it was acknowledged.

        Raises:
            RequestTimeout: The add has not ended within `timeout`.
            ClientClosed: This is a forked child of the process that added the entry, where it cannot end.
        """
        self._refuse_in_child()
        _wait(self._add, timeout)
        try:
            self._add.result()
        except Exception as error:  # noqa: BLE001 - it is what the caller asks for
            return error
        return None

    def add_done_callback(self, fn: Callable[[Future[int]], object]) -> None:
        """Call a function with this future once the add has ended; at once if it has.

        Args:
            fn: It runs on the client's thread, where calls that wait are refused with IllegalOperation.
        """
        super().add_done_callback(fn)

    def __repr__(self) -> str:
        state = "pending" if not self.done() else "acknowledged" if self.exception() is None else "failed"
        return f"<Append of ledger {self._add.window.ledger}, entry {self._add.entry}, {state}>"

    def _refuse_in_child(self) -> None:
        if self._born != _forks and not self._add.done():
            raise ClientClosed(
                f"ledger {self._add.window.ledger}, entry {self._add.entry}: process {os.getpid()} was forked from the"
                " client's before the add ended: wait for it there"
            )

    def _settle(self) -> None:
        with contextlib.suppress(InvalidStateError):  # it was settled before
            error = self.exception()
            if error is None:
                self.set_result(self._add.entry)
            else:
                self.set_exception(error)


class _Listener:
    """Is told when the add has ended."""

    def __init__(self, append: Append) -> None:
        self._append = append

    def done(self) -> bool:
        return False

    def set_result(self, _: None) -> None:
        self._append._settle()


def finished(add: Add, timeout: float | None) -> int:
    """Wait until an add is acknowledged, and return its id. A `timeout` of None
    means no limit. Raises RequestTimeout, or the error of the add."""
    _wait(add, timeout)
    return add.result()


def _wait(add: Add, timeout: float | None) -> None:
    if not add.wait(-1 if timeout is None else max(timeout, 0)):
        raise RequestTimeout(
            f"ledger {add.window.ledger}, entry {add.entry}: not acknowledged within {timeout:g} s; it may be"
            " acknowledged later"
        )


def _forked() -> None:
    global _making, _forks  # noqa: PLW0603 - the thread that held the lock does not exist in the forked child
    _making = threading.Lock()
    _forks += 1


os.register_at_fork(after_in_child=_forked)
