"""Which ledgers are deleted. A ledger is deleted only if the complete listing of the metadata store lacks it, and a
separate read confirms that: from here, a listing that ended early, an empty store and a wrong store look alike.

Pure functions over sorted arrays of ids; no thread, no clock. An id takes eight bytes, so for a million ledgers there
are a few arrays of 8 MB.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from bookie.errors import BookKeeperError

__all__ = ["candidates", "GUARD_LEDGERS_MIN", "Ids", "ListingBroken", "too_many", "whole_listing"]

Ids = NDArray[np.int64]
GUARD_LEDGERS_MIN = 20
"""A smaller number of deletions never raises the alarm: a bookie with five ledgers may well lose four."""


class ListingBroken(BookKeeperError):
    """The metadata store listed ids that are not ledger ids, or not in ascending order."""

    retriable = True


def whole_listing(pieces: Iterable[Sequence[int]]) -> Ids:
    """Join the pieces into one array. Raises ListingBroken unless the ids strictly ascend from 0 or above, and passes
    on exceptions of `pieces`.
    """
    parts: list[Ids] = []
    last = -1
    for piece in pieces:
        try:
            ids = np.array(piece, dtype=np.int64)
        except (OverflowError, ValueError, TypeError) as error:
            raise ListingBroken(f"the metadata store listed an invalid ledger id after {last}: {error}") from error
        if not ids.size:
            continue
        if ids[0] <= last or not (ids[1:] > ids[:-1]).all():
            raise ListingBroken(
                f"the metadata store listed ledgers out of ascending order after {last}; check the metadata store"
            )
        last = int(ids[-1])
        parts.append(ids)
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def candidates(local: Ids, listed: Ids) -> Ids:
    """Return the ledgers that are here but not listed. Both ascend; `local` was taken before the listing began."""
    if not listed.size:
        return local
    at = np.searchsorted(listed, local)
    at[at == listed.size] = 0
    missing: Ids = local[listed[at] != local]
    return missing


def too_many(going: int, local: int, share_max: float) -> bool:
    """Return whether deleting `going` of `local` ledgers needs an operator's confirmation."""
    return going >= GUARD_LEDGERS_MIN and going > share_max * local
