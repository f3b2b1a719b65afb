"""The threads that endpoints run in, beside callers that give up at any moment."""

import asyncio
import random
import threading
from typing import Any, cast

import pytest

from bookie.metadata.patience import NoAnswer
from bookie_admin.http.request import HttpRequest, Refused, Reply, reply_text
from bookie_admin.http.threads import RequestThreads

THREADS = 4
WAIT_S = 60.0


class Given:
    """What the threads need of a request."""

    timeout_s = WAIT_S


@pytest.mark.parametrize("seed", range(20))
def test_no_place_is_lost(seed: int) -> None:
    """Calls end well, by a silent store, or because their callers have gone, while they run or wait, in any order.
    Afterwards as many as before run at a time.
    """
    rng = random.Random(seed)
    request = cast("HttpRequest", Given())
    threads = RequestThreads(THREADS)

    def endpoint(_request: HttpRequest) -> Reply:
        threading.Event().wait(rng.choice((0, 0.001, 0.003)))
        if rng.random() < 0.2:
            raise NoAnswer("the store did not answer")
        return reply_text("done")

    def all_at_once(barrier: threading.Barrier) -> Any:
        def meet(_request: HttpRequest) -> Reply:
            barrier.wait(WAIT_S)
            return reply_text("met")

        return meet

    async def script() -> None:
        calls = []
        for _ in range(300):
            calls.append(asyncio.ensure_future(threads.run(endpoint, request, asks_store=rng.random() < 0.5)))
            if rng.random() < 0.3:
                rng.choice(calls).cancel()
            if rng.random() < 0.3:
                await asyncio.sleep(0)
        for outcome in await asyncio.gather(*calls, return_exceptions=True):
            assert isinstance(outcome, (Reply, NoAnswer, Refused, asyncio.CancelledError)), outcome
        for asks_store, number in ((True, THREADS - 1), (False, THREADS)):
            meet = all_at_once(threading.Barrier(number))
            async with asyncio.timeout(WAIT_S):
                met = await asyncio.gather(*(threads.run(meet, request, asks_store=asks_store) for _ in range(number)))
            assert {one.status for one in met} == {200}

    try:
        asyncio.run(script())
    finally:
        threads.close()
