"""Run several coroutines together. Event loop."""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any

__all__ = ["together"]


async def together(work: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Run coroutines until all are done. The first error, or a cancellation of the caller, cancels the others.

    All of them have ended when this returns or raises. Each is cancelled once, and may take its time to clean up.
    With asyncio.gather, a cancelled caller continues as soon as the first of them has ended; its own cleanup would
    then cancel the others a second time, in the middle of theirs.
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
