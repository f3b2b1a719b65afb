"""Which bookie must hold which entries, compared with the metadata's write sets entry by entry."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bookie.metadata.records.ledger_metadata import LedgerMetadata, LedgerState, Segment
from bookie.repair.expected import expected_entries, in_last_ensemble, judged_end, names

BOOKIES = [f"b{i}:3181" for i in range(6)]


@st.composite
def ledgers(draw: st.DrawFn) -> LedgerMetadata:
    """Any valid striping over up to three segments."""
    ensemble = draw(st.integers(1, 5))
    write = draw(st.integers(1, ensemble))
    firsts = [0, *sorted(draw(st.sets(st.integers(1, 40), max_size=2)))]
    segments = tuple(Segment(first, tuple(draw(st.permutations(BOOKIES))[:ensemble])) for first in firsts)
    closed = draw(st.booleans())
    return LedgerMetadata(
        ensemble_size=ensemble,
        write_quorum=write,
        ack_quorum=1,
        segments=segments,
        state=LedgerState.CLOSED if closed else draw(st.sampled_from([LedgerState.OPEN, LedgerState.IN_RECOVERY])),
        last_entry=draw(st.integers(-1, 60)) if closed else -1,
    )


@given(ledgers(), st.sampled_from(BOOKIES))
def test_b17_what_a_bookie_has_to_hold(metadata: LedgerMetadata, bookie_id: str) -> None:
    """A bookie must hold the entries of its write sets, up to the last one, or in an open ledger the last ensemble."""
    end = metadata.last_entry + 1 if metadata.state is LedgerState.CLOSED else metadata.segments[-1].first_entry
    assert judged_end(metadata) == end
    wanted = [entry for entry in range(end) if bookie_id in metadata.write_set(entry)]
    parts = list(expected_entries(metadata, bookie_id))
    assert [entry for part in parts for entry in part.entries.tolist()] == wanted
    for part in parts:
        for entry in part.entries.tolist():
            others = tuple(other for other in metadata.write_set(entry) if other != bookie_id)
            assert (part.segment, part.others_of(entry)) == (metadata.segment_of(entry), others)
    assert names(metadata, bookie_id) == any(bookie_id in segment.bookies for segment in metadata.segments)
    assert in_last_ensemble(metadata, bookie_id) == (bookie_id in metadata.segments[-1].bookies)


def test_large_ledgers_come_in_parts() -> None:
    """A million entries come in several arrays."""
    metadata = LedgerMetadata(
        ensemble_size=3,
        write_quorum=2,
        ack_quorum=2,
        segments=(Segment(0, ("a:1", "b:1", "c:1")),),
        state=LedgerState.CLOSED,
        last_entry=999_999,
    )
    parts = [part.entries for part in expected_entries(metadata, "b:1")]
    assert len(parts) == 4
    assert np.concatenate(parts).tolist() == [entry for entry in range(1_000_000) if entry % 3 != 2]
