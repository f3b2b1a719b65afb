"""The outstanding calls of a client: who is cancelled, and by whom."""

import asyncio

import pytest

from bookie.client.aio.scope import Scope
from bookie.errors import ClientClosed


async def for_ever() -> None:
    """Wait for nothing."""
    await asyncio.get_running_loop().create_future()


def test_closing_ends_calls_and_not_their_callers() -> None:
    """A caller gets ClientClosed, can go on to wait for other things, and may be cancelled later like any task."""

    async def scenario() -> None:
        scope = Scope()
        went_on = asyncio.Event()

        async def caller() -> None:
            with pytest.raises(ClientClosed):
                await scope.run(for_ever())
            async with asyncio.timeout(60):
                await asyncio.sleep(0)
            went_on.set()
            await for_ever()

        task = asyncio.ensure_future(caller())
        await asyncio.sleep(0)
        await scope.close()
        await went_on.wait()
        assert not task.cancelling()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(ClientClosed):
            await scope.run(for_ever())

    asyncio.run(scenario())


@pytest.mark.parametrize("first", [True, False])
def test_a_caller_that_is_cancelled_while_the_client_is_closed_stays_cancelled(first: bool) -> None:
    """Closing must not turn the cancellation of a caller into an error that it may handle."""

    async def scenario() -> None:
        scope = Scope()
        task = asyncio.ensure_future(scope.run(for_ever()))
        await asyncio.sleep(0)
        if first:
            task.cancel()
        closing = asyncio.ensure_future(scope.close())
        await asyncio.sleep(0)
        if not first:
            assert not task.done()
            task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        await closing

    asyncio.run(scenario())


def test_closing_waits_until_calls_have_cleaned_up() -> None:
    """When `close` returns, no call is running any more."""

    async def scenario() -> None:
        scope = Scope()
        cleaned = asyncio.Event()

        async def call() -> None:
            try:
                await for_ever()
            finally:
                for _ in range(5):
                    await asyncio.sleep(0)
                cleaned.set()

        tasks = [asyncio.ensure_future(scope.run(call())) for _ in range(3)]
        await asyncio.sleep(0)
        await asyncio.gather(scope.close(), scope.close())
        assert cleaned.is_set()
        for task in tasks:
            with pytest.raises(ClientClosed):
                await task

    asyncio.run(scenario())
