"""The bounded threads that endpoints run in.

While the metadata store is silent, requests that ask it wait for it. So they take no more than a share of the threads,
and each has a few seconds: its own ones, or those in which it has waited behind others that got no answer.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from bookie.errors import RequestTimeout
from bookie.metadata.patience import NoAnswer, at_most
from bookie_admin.http.request import HttpRequest, Refused, Reply
from bookie_admin.store_calls import STORE_S, share

__all__ = ["RequestThreads"]

WAITING_MAX = 64
KEPT = 4
"""One thread of so many, and at least one, is kept for requests that do not ask the metadata store."""


class Lane:
    """Requests of one kind: `running` at a time at most, of which some may still wait for a thread, and `WAITING_MAX`
    that wait for their turn. Used by the event loop only.
    """

    def __init__(self, running: int) -> None:
        self._free = running
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def enter(self) -> None:
        """Wait for a turn. `leave` must be called after it.

        Raises:
            Refused: too many requests are waiting (503).
            NoAnswer: another request got no answer from the store meanwhile.
        """
        if self._free:
            self._free -= 1
            return
        if len(self._waiting) >= WAITING_MAX:
            raise Refused(503, "too many requests are waiting; retry in a moment")
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn in self._waiting:
                self._waiting.remove(turn)
            elif turn.done() and not turn.cancelled() and turn.exception() is None:  # it was given and is not used
                self.leave()
            raise

    def leave(self, failure: BaseException | None = None) -> None:
        """End a turn, and give it to the request that has waited for longest."""
        if isinstance(failure, NoAnswer):
            while self._waiting:
                _end(self._waiting.popleft(), NoAnswer(str(failure)))
        while self._waiting:
            if _end(self._waiting.popleft()):
                return
        self._free += 1


class RequestThreads:
    """Threads for calls that block. At most `WAITING_MAX` calls of each kind wait for a thread; further ones are
    refused.
    """

    def __init__(self, threads: int) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="http")
        self._own = Lane(threads)
        self._asking = Lane(threads - max(1, threads // KEPT))

    async def run(
        self, endpoint: Callable[[HttpRequest], Reply], request: HttpRequest, *, asks_store: bool = False
    ) -> Reply:
        """Run an endpoint in a thread and return its reply. A call that has timed out still occupies its thread, and
        is counted, until it returns.

        Raises:
            Refused: too many calls are waiting (503), or the endpoint takes too long (504).
            NoAnswer: it waited for a thread while others waited for the metadata store in vain.
            RequestTimeout: the endpoint says itself what has not ended.
        """
        lane = self._asking if asks_store else self._own
        try:
            return await asyncio.wait_for(self._run(lane, partial(_briefly, endpoint, request)), request.timeout_s)
        except RequestTimeout:
            raise
        except TimeoutError:
            raise Refused(504, f"no answer within {request.timeout_s:g} s (httpServerRequestTimeoutMs)") from None

    async def _run(self, lane: Lane, call: Callable[[], Reply]) -> Reply:
        await lane.enter()
        future = asyncio.get_running_loop().run_in_executor(self._pool, call)
        future.add_done_callback(partial(_left, lane))
        return await asyncio.shield(future)

    def close(self) -> None:
        """Accept no further calls; those in progress end by themselves."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def _briefly(endpoint: Callable[[HttpRequest], Reply], request: HttpRequest) -> Reply:
    with at_most(share(request.timeout_s, STORE_S)):
        return endpoint(request)


def _left(lane: Lane, future: "asyncio.Future[Reply]") -> None:
    lane.leave(None if future.cancelled() else future.exception())  # the caller was told, or has gone


def _end(turn: "asyncio.Future[None]", failure: NoAnswer | None = None) -> bool:
    """Tell a request that waits that it has its turn, or why it fails; return whether it still waits."""
    if turn.done():
        return False
    if failure is None:
        turn.set_result(None)
    else:
        turn.set_exception(failure)
    return True
