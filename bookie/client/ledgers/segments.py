"""How a ledger's metadata change when bookies fail while it is written. Pure functions."""

import contextlib
from collections.abc import Mapping, Sequence

from bookie.client.contracts import Placement
from bookie.client.ledgers.metadata_loop import with_segment
from bookie.errors import MetadataVersionConflict, NotEnoughBookies
from bookie.metadata.records.ledger_metadata import LedgerMetadata

__all__ = ["with_bookies_replaced"]


def with_bookies_replaced(
    metadata: LedgerMetadata,
    failed: Mapping[int, str],
    first_entry: int,
    placement: Placement,
    avoided: Sequence[frozenset[str]] = (frozenset(),),
) -> LedgerMetadata:
    """Return metadata in which other bookies replace the failed ones of the last ensemble, from `first_entry` on.

    It replaces as many as possible, and raises NotEnoughBookies if it can replace none. A replacement is not in
    the first set of `avoided`; if there is none, not in the second one, and so on.
    """
    former = metadata.segments[-1].bookies
    if metadata.segments[-1].first_entry > first_entry:
        raise MetadataVersionConflict(
            f"the last segment starts at entry {metadata.segments[-1].first_entry}, after {first_entry}, where this"
            " writer changes bookies: another client writes the ledger; open it to read"
        )
    ensemble = list(former)
    for index, bookie in sorted(failed.items()):
        if ensemble[index] != bookie:
            continue
        try:
            ensemble[index] = _replacement(metadata, ensemble, index, frozenset(failed.values()), placement, avoided)
        except NotEnoughBookies:
            if tuple(ensemble) == former:
                raise
            break
    return with_segment(metadata, first_entry, ensemble)


def _replacement(
    metadata: LedgerMetadata,
    ensemble: Sequence[str],
    index: int,
    failed: frozenset[str],
    placement: Placement,
    avoided: Sequence[frozenset[str]],
) -> str:
    *preferred, last = avoided

    def choose(out: frozenset[str]) -> str:
        quorums = metadata.write_quorum, metadata.ack_quorum
        return placement.replacement(*quorums, tuple(ensemble), index, excluded=failed | out, custom=metadata.custom)

    for out in preferred:
        with contextlib.suppress(NotEnoughBookies):
            return choose(out)
    return choose(last)
