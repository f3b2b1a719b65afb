"""Calls to the metadata store on behalf of a call at the admin or HTTP port, whose caller is to hear what the bookie
itself knows even if the store is silent. Any thread.
"""

from contextlib import AbstractContextManager
from typing import Any

from bookie.metadata.patience import at_most

__all__ = ["briefly", "share", "share_of", "STORE_S", "WHOLE_SHARE"]

STORE_S = 3.0
"""How long the store has for each answer, at most, in seconds."""
SHARE = 0.5
"""The share of the time of the caller that the store has for an answer."""

WHOLE_SHARE = 0.9
"""The share for what the caller waits for, and nothing besides."""


def share(left_s: float, most_s: float, part: float = SHARE) -> float:
    """Return how long an answer may take if the caller waits for `left_s`, to hear that it did not come; in seconds."""
    return min(most_s, part * left_s)


def share_of(context: Any, most_s: float, part: float = SHARE) -> float:
    """Return how long an answer may take of which the caller still wants to hear that it did not come, in seconds."""
    left = context.time_remaining()
    return most_s if left is None else share(left, most_s, part)


def briefly(context: Any) -> AbstractContextManager[None]:
    """Let the calls to the store in the block end in time for an answer to the caller of `context`."""
    return at_most(share_of(context, STORE_S))
