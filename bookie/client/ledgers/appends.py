"""Adds that were accepted, as futures of asyncio. Event loop."""

import asyncio
from collections.abc import Callable, Generator
from contextvars import Context
from typing import Any, NoReturn

from bookie._fast.client.write_window import Add

__all__ = ["Append"]


class Append(asyncio.Future[int]):
    """A pending add: a future of the entry id.

    Cancelling it ends the wait, not the add: an entry that was accepted cannot be taken back.
    """

    # Most adds are only counted, or waited for by `flush`. What a future needs besides is made when somebody waits for
    # it or gives it a callback: it costs more than the add. So nothing of asyncio.Future itself is initialized.

    __slots__ = ("_add", "_ended", "_home")
    _asyncio_future_blocking = False

    def __init__(self, add: Add, loop: asyncio.AbstractEventLoop) -> None:
        self._add = add
        self._home = loop
        self._ended: asyncio.Future[None] | None = None
        """Is done when the add has ended, or cancelled by who waits for it. It has no result, and never an error."""

    def get_loop(self) -> asyncio.AbstractEventLoop:
        """Return the client's event loop."""
        return self._home

    def done(self) -> bool:
        """Return whether the add was acknowledged or has failed, or this future was cancelled."""
        return self._add.done() or self.cancelled()

    def cancelled(self) -> bool:
        """Return whether this future was cancelled before the add had ended."""
        return self._ended is not None and self._ended.cancelled()

    def cancel(self, msg: Any | None = None) -> bool:
        """Wait no longer for the add, and return whether it was still pending."""
        return not self._add.done() and self._end().cancel(msg)

    def result(self) -> int:
        """Return the entry id, or raise the error that ended the add."""
        self._check_ended()
        return self._add.result()

    def exception(self) -> BaseException | None:
        """Return the error that ended the add, or None if it was acknowledged."""
        self._check_ended()
        try:
            self._add.result()
        except Exception as error:  # noqa: BLE001 - it is what the caller asks for
            return error
        return None

    def add_done_callback(self, fn: Callable[[Any], object], *, context: Context | None = None) -> None:
        """Have the loop call a function with this future once it is done."""
        if context is None:
            self._end().add_done_callback(_Callback(self, fn))
        else:
            self._end().add_done_callback(_Callback(self, fn), context=context)

    def remove_done_callback(self, fn: Callable[[Any], object], /) -> int:
        """Remove a callback, and return how often it was there."""
        return 0 if self._ended is None else self._ended.remove_done_callback(_Callback(self, fn))

    def set_result(self, _: int, /) -> NoReturn:
        """Raise InvalidStateError: the bookies decide how an add ends."""
        raise asyncio.InvalidStateError(f"{self!r} ends with its add; it cannot be given a result")

    def set_exception(self, _: type | BaseException, /) -> NoReturn:
        """Raise InvalidStateError: the bookies decide how an add ends."""
        raise asyncio.InvalidStateError(f"{self!r} ends with its add; it cannot be given an exception")

    def __await__(self) -> Generator[Any, None, int]:
        if not self.done():
            yield from self._end()
        return self.result()

    __iter__ = __await__

    def __repr__(self) -> str:
        if not self.done():
            state = "pending"
        elif self.cancelled():
            state = "cancelled"
        else:
            state = "acknowledged" if self.exception() is None else "failed"
        return f"<Append of ledger {self._add.window.ledger}, entry {self._add.entry}, {state}>"

    def _end(self) -> asyncio.Future[None]:
        ended = self._ended
        if ended is None:
            ended = self._ended = self._home.create_future()
            if self._add.done():
                ended.set_result(None)
            else:
                self._add.tell(ended)
        return ended

    def _check_ended(self) -> None:
        if self.cancelled():
            raise self._make_cancelled_error()
        if not self._add.done():
            raise asyncio.InvalidStateError(f"{self!r} has not ended")

    def _make_cancelled_error(self) -> asyncio.CancelledError:
        """Return the error of a future that was cancelled; `asyncio.gather` asks for it."""
        ended: Any = self._end()
        error: asyncio.CancelledError = ended._make_cancelled_error()
        return error


class _Callback:
    """Calls a function with an add instead of the future that tells of its end. Equal to others of this function."""

    __slots__ = ("_append", "_function")

    def __init__(self, append: Append, function: Callable[[Any], object]) -> None:
        self._append = append
        self._function = function

    def __call__(self, _: object) -> None:
        self._function(self._append)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Callback) and self._function == other._function

    def __hash__(self) -> int:
        return hash(self._function)
