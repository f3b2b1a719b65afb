"""Test module client.add_waiters: callers that wait for an add of a window are woken once, or leave nothing behind."""

import asyncio
import threading

import pytest

from bookie._fast.client.write_window import Add, WriteWindow
from tests.fast.test_write_window import ack, window


def added(w: WriteWindow) -> Add:
    """Return one more pending add."""
    add = w.append(b"x")
    assert add is not None
    return add


def sent(w: WriteWindow) -> None:
    """Send all that were added."""
    w.take(0.0)
    for index in range(3):
        w.batch(index)


class EndCounter:
    """Counts how often it is told that an add has ended."""

    def __init__(self, *, done: bool = False) -> None:
        self.times = 0
        self._done = done

    def done(self) -> bool:
        """Return whether it needs no more."""
        return self._done

    def set_result(self, _: None) -> None:
        """Count."""
        self.times += 1


def test_those_who_leave_are_forgotten() -> None:
    """A wait that is cancelled or has taken too long leaves nothing behind, however often it is repeated."""

    async def main() -> None:
        w = window()
        add = added(w)
        for _ in range(100):
            assert not add.wait(0)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0):
                    await add
        assert w.waiting == 0

    asyncio.run(main())


def test_all_kinds_of_callers_are_woken_once() -> None:
    """A thread, a task and a callback hear of the acknowledgement; a callback that is done does not."""

    async def main() -> None:
        w = window()
        first, second = added(w), added(w)
        sent(w)
        counter, done = EndCounter(), EndCounter(done=True)
        first.tell(counter)
        first.tell(done)
        thread = threading.Thread(target=first.wait)
        thread.start()
        task = asyncio.ensure_future(asyncio.wait_for(first, 60))
        late = asyncio.ensure_future(asyncio.wait_for(second, 60))
        while w.waiting < 5:  # noqa: ASYNC110 - the window has no event for it
            await asyncio.sleep(0)
        for index in (0, 1):
            ack(w, index, 0)
        assert w.release() == 1
        assert await task == 0
        await asyncio.to_thread(thread.join)
        assert (counter.times, done.times, w.waiting) == (1, 0, 1)
        w.fail(ValueError("over"))
        with pytest.raises(Exception, match="1: over"):
            await late
        assert w.waiting == 0

    asyncio.run(main())
