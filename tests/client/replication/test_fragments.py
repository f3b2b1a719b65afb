"""What each bookie must hold, compared with the write sets entry by entry."""

from hypothesis import given
from hypothesis import strategies as st

from bookie.client.replication.fragments import fragments, holds, missing_from_tail
from bookie.metadata.records.ledger_metadata import LedgerMetadata, LedgerState, Segment


@st.composite
def ledgers(draw: st.DrawFn) -> tuple[LedgerMetadata, int]:
    """Metadata of any shape, with a possible LAC."""
    size = draw(st.integers(1, 5))
    quorum = draw(st.integers(1, size))
    firsts = sorted({0, *draw(st.lists(st.integers(1, 60), max_size=4))})
    segments = tuple(Segment(first, tuple(f"b{first}-{k}" for k in range(size))) for first in firsts)
    closed = draw(st.booleans())
    low = max(firsts[-1] - 1, -1)
    lac = draw(st.integers(low, low + 40)) if closed else draw(st.integers(-1, firsts[-1] + 40))
    metadata = LedgerMetadata(
        ensemble_size=size,
        write_quorum=quorum,
        ack_quorum=1,
        segments=segments,
        state=LedgerState.CLOSED if closed else LedgerState.OPEN,
        last_entry=lac if closed else -1,
    )
    return metadata, lac


@given(ledgers())
def test_fragments_are_the_write_sets(made: tuple[LedgerMetadata, int]) -> None:
    """The first and last entry of each place agree with the write sets, and no place is missing."""
    metadata, lac = made
    found = fragments(metadata, lac)
    for part in found:
        mine = [entry for entry in range(part.first, part.last + 1) if part.bookie in metadata.write_set(entry)]
        assert part.stored == ((mine[0], mine[-1]) if mine else None)
        size, quorum = metadata.ensemble_size, metadata.write_quorum
        assert mine == [e for e in range(part.first, part.last + 1) if holds(part.index, e, size, quorum)]
        assert part.certain == (part.first <= lac or part.first < metadata.segments[-1].first_entry)
    covered = {entry for part in found for entry in range(part.first, part.last + 1)}
    assert covered >= set(range(lac + 1))
    if metadata.state is LedgerState.CLOSED:
        assert covered == set(range(lac + 1))
        assert all(part.closed for part in found)


@given(ledgers())
def test_what_is_written_to_is_not_closed(made: tuple[LedgerMetadata, int]) -> None:
    """In an open ledger the last segment is never closed, and earlier ones only when the LAC has passed them."""
    metadata, lac = made
    tail = metadata.segments[-1].first_entry
    for part in fragments(metadata, lac):
        if metadata.state is LedgerState.OPEN and (part.first == tail or lac < tail - 1):
            assert not part.closed
    everybody = frozenset(bookie for segment in metadata.segments for bookie in segment.bookies)
    assert not missing_from_tail(metadata, lac, everybody)
    assert bool(missing_from_tail(metadata, lac, frozenset())) == (metadata.state is LedgerState.OPEN)
