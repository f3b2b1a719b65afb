"""Calls that may take a limited time. Event loop."""

import asyncio
import math
from collections.abc import Coroutine
from typing import Any, TypeVar

from bookie.errors import IncorrectParameter, RequestTimeout

__all__ = ["limited", "seconds"]

T = TypeVar("T")


def seconds(timeout: float) -> float | None:
    """Return a caller's limit in seconds, or None if it is infinite. Raises IncorrectParameter. Any thread."""
    given: object = timeout
    if not isinstance(given, int | float) or not given >= 0:
        raise IncorrectParameter(
            f"timeout={timeout!r}: it must be a number of seconds of at least 0; math.inf means no limit"
        )
    return None if timeout == math.inf else timeout


async def limited(call: Coroutine[Any, Any, T], timeout_s: float | None) -> T:
    """Return the result of a call, or raise RequestTimeout after so many seconds; None means no limit.

    The call has then ended: it was cancelled where it waited, so a result that it had already taken is not lost.
    """
    try:
        limit = asyncio.timeout(None if timeout_s is None else seconds(timeout_s))
    except BaseException:
        call.close()
        raise
    try:
        async with limit:
            return await call
    except TimeoutError:
        if not limit.expired():
            raise
        raise RequestTimeout(
            f"no result within {timeout_s:g} s; the call may have taken effect: allow it more time (`timeout`,"
            " callTimeoutSec)"
        ) from None
