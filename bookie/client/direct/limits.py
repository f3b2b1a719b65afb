"""How long the steps of a direct call may take."""

__all__ = ["step_limit_s"]

LIMIT_S_MIN = 0.5
"""Calls with a shorter limit are left to the event loop."""
SHARE = 0.25
"""The share of a call's limit that each of the two steps of a direct call may take: to connect, and to be answered.
So at least half of the limit is left for the event loop.
"""


def step_limit_s(limit_s: float | None, most_s: float) -> float:
    """Return how many seconds a step of a call with this limit may take, `most_s` at most; 0 if none may be tried."""
    if limit_s is None:
        return most_s
    return min(SHARE * limit_s, most_s) if limit_s >= LIMIT_S_MIN else 0.0
