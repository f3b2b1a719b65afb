"""The state of each bookie of a cluster, according to its registration and its cookie. Any thread.

A bookie that changes its mode is registered in both modes for a moment; it then counts as writable, as for clients.
"""

import enum
from collections.abc import Set as AbstractSet

from bookie.metadata.driver import Bookies

__all__ = ["bookie_states", "BookieState", "is_registered", "states_of"]


class BookieState(enum.StrEnum):
    """The states, as operators see them."""

    WRITABLE = "writable"
    READ_ONLY = "read-only"
    ABSENT = "absent"
    """The bookie has a cookie and is not registered: it is down, or was removed without its cookie."""


def states_of(
    *, writable: AbstractSet[str], read_only: AbstractSet[str], known: AbstractSet[str]
) -> dict[str, BookieState]:
    """Return the state of each bookie that is registered or has a cookie, sorted by id."""
    states = {
        **dict.fromkeys(known, BookieState.ABSENT),
        **dict.fromkeys(read_only, BookieState.READ_ONLY),
        **dict.fromkeys(writable, BookieState.WRITABLE),
    }
    return dict(sorted(states.items()))


def bookie_states(bookies: Bookies) -> dict[str, BookieState]:
    """Return the states of the bookies in a store. Raises MetadataStoreError."""
    writable, read_only = _registered(bookies)
    return states_of(writable=writable, read_only=read_only, known=bookies.known())


def is_registered(bookies: Bookies, bookie_id: str) -> bool:
    """Return whether a bookie is registered in any mode. Raises MetadataStoreError."""
    return any(bookie_id in those for those in _registered(bookies))


def _registered(bookies: Bookies) -> tuple[frozenset[str], frozenset[str]]:
    """Return the writable and the read-only bookies.

    The writable ones are read twice, since a bookie that changes its mode in between would be in neither set.
    """
    before, read_only = bookies.present(read_only=False), bookies.present(read_only=True)
    return before | bookies.present(read_only=False), read_only
