"""In which state each bookie of a cluster is, as its registration and its cookie tell. Any thread.

A bookie that changes its mode is registered in both for a moment: it counts as writable, as clients take it.
"""

import enum
from collections.abc import Set as AbstractSet

from bookie.metadata.driver import Bookies

__all__ = ["bookie_states", "BookieState", "is_registered", "states_of"]


class BookieState(enum.StrEnum):
    """As operators read it."""

    WRITABLE = "writable"
    READ_ONLY = "read-only"
    ABSENT = "absent"
    """It has a cookie and is not registered: it is down, or was removed without its cookie."""


def states_of(
    *, writable: AbstractSet[str], read_only: AbstractSet[str], known: AbstractSet[str]
) -> dict[str, BookieState]:
    """The state of each bookie that is registered or known by its cookie, by id in their order."""
    states = {
        **dict.fromkeys(known, BookieState.ABSENT),
        **dict.fromkeys(read_only, BookieState.READ_ONLY),
        **dict.fromkeys(writable, BookieState.WRITABLE),
    }
    return dict(sorted(states.items()))


def bookie_states(bookies: Bookies) -> dict[str, BookieState]:
    """The same of a store's. MetadataStoreError."""
    writable, read_only = _registered(bookies)
    return states_of(writable=writable, read_only=read_only, known=bookies.known())


def is_registered(bookies: Bookies, bookie_id: str) -> bool:
    """In whichever mode. MetadataStoreError."""
    return any(bookie_id in those for those in _registered(bookies))


def _registered(bookies: Bookies) -> tuple[frozenset[str], frozenset[str]]:
    """Writable and read-only. Who is writable is asked twice, or one that becomes so meanwhile would be in neither."""
    before, read_only = bookies.present(read_only=False), bookies.present(read_only=True)
    return before | bookies.present(read_only=False), read_only
