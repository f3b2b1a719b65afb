"""Several coroutines that belong together. Event loop."""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any

__all__ = ["together"]


async def together(work: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Until all are done. The first error, or the end of our own task, ends the others; all have ended on return.

    Each is cancelled once, and may take its time over that: asyncio.gather passes a cancellation on and ends with the
    first that obeys, so whoever tidies up behind it cancels the others once more, in the middle of their own tidying.
    """
    tasks = [asyncio.ensure_future(one) for one in work]
    if not tasks:
        return
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        for task in tasks:
            if task.done():
                task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
