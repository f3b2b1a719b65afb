"""Which ledgers go. A ledger is deleted only if the whole listing of the metadata store lacks it and a read of its own
says the same: a listing that ended early, an empty store and a wrong one look alike from here.

Pure functions over sorted arrays of ids; no thread, no clock. An id takes eight bytes, so a million ledgers are a few
arrays of 8 MB.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from bookie.errors import BookKeeperError

__all__ = ["candidates", "GUARD_LEDGERS_MIN", "Ids", "ListingBroken", "too_many", "whole_listing"]

Ids = NDArray[np.int64]
GUARD_LEDGERS_MIN = 20
"""Fewer deletions than this are never too many: a bookie with five ledgers may well lose four."""


class ListingBroken(BookKeeperError):
    """The metadata store listed ledgers in an order, or with numbers, that cannot be right."""

    retriable = True


def whole_listing(pieces: Iterable[Sequence[int]]) -> Ids:
    """All pieces as one array. What `pieces` raises ends it; ListingBroken unless ids ascend strictly from 0 up."""
    parts: list[Ids] = []
    last = -1
    for piece in pieces:
        try:
            ids = np.array(piece, dtype=np.int64)
        except (OverflowError, ValueError, TypeError) as error:
            raise ListingBroken(f"the metadata store lists what is no ledger id behind {last}: {error}") from error
        if not ids.size:
            continue
        if ids[0] <= last or not (ids[1:] > ids[:-1]).all():
            raise ListingBroken(f"the metadata store lists ledgers that do not ascend behind {last}; check the store")
        last = int(ids[-1])
        parts.append(ids)
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def candidates(local: Ids, listed: Ids) -> Ids:
    """Ledgers that are here and not listed. Both ascend; `local` was taken before the listing began."""
    if not listed.size:
        return local
    at = np.searchsorted(listed, local)
    at[at == listed.size] = 0
    missing: Ids = local[listed[at] != local]
    return missing


def too_many(going: int, local: int, share_max: float) -> bool:
    """Whether so many of `local` ledgers must not go without an operator's word."""
    return going >= GUARD_LEDGERS_MIN and going > share_max * local
