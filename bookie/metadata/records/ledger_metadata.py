"""What the cluster knows about one ledger: quorums, state, and which bookies hold which entries. Frozen; any thread.

`ledger_codec` turns it into the bytes of the metadata store and back.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

LEDGER_METADATA_VERSION = 3
LEDGER_IDS_END = 1 << 63


class LedgerState(IntEnum):
    OPEN = 1
    IN_RECOVERY = 2
    CLOSED = 3


class DigestType(IntEnum):
    """The numbers of the stored format; the Java client's public enum counts otherwise."""

    CRC32 = 1
    HMAC = 2
    CRC32C = 3
    DUMMY = 4


@dataclass(frozen=True, slots=True)
class Segment:
    """From `first_entry` on, until the next segment, these bookies take the entries; their order is the striping."""

    first_entry: int
    bookies: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerMetadata:
    """One ledger. Make changed copies with `dataclasses.replace`."""

    ensemble_size: int
    write_quorum: int
    ack_quorum: int
    segments: tuple[Segment, ...]
    state: LedgerState = LedgerState.OPEN
    length: int = 0
    """Bytes of all entries; 0 unless CLOSED."""
    last_entry: int = -1
    """-1 unless CLOSED; a closed empty ledger has -1 too."""
    digest_type: DigestType | None = None
    """None in ledgers older than digests; they have no password either."""
    password: bytes = field(default=b"", repr=False)
    ctime_ms: int | None = None
    """When it is None the store's own creation time is the ledger's."""
    custom: Mapping[str, bytes] = field(default_factory=dict)
    token: int = 0
    """Random at creation, tells the creator its own node after a lost answer; 0 after any rewrite."""
    format_version: int = LEDGER_METADATA_VERSION
    """How it was stored; a rewrite keeps it."""

    def problem(self) -> str | None:
        """The first rule that this metadata breaks, in words; None if it is valid."""
        if not 1 <= self.ack_quorum <= self.write_quorum <= self.ensemble_size:
            return (
                f"quorums must be 1 <= ack <= write <= ensemble, "
                f"not {self.ack_quorum}, {self.write_quorum}, {self.ensemble_size}"
            )
        return self._problem_of_segments() or self._problem_of_end()

    def segment_of(self, entry_id: int) -> Segment:
        """The segment that holds `entry_id`: the last one that starts at or before it."""
        return next(segment for segment in reversed(self.segments) if segment.first_entry <= entry_id)

    def write_set(self, entry_id: int) -> tuple[str, ...]:
        """The bookies of an entry, in the order in which they are asked."""
        bookies = self.segment_of(entry_id).bookies
        start = entry_id % len(bookies)
        return tuple(bookies[(start + k) % len(bookies)] for k in range(self.write_quorum))

    def _problem_of_segments(self) -> str | None:
        if not self.segments:
            return "no segment"
        if self.segments[0].first_entry != 0:
            return f"the first segment starts at entry {self.segments[0].first_entry}, not 0"
        for before, after in zip(self.segments, self.segments[1:], strict=False):
            if after.first_entry <= before.first_entry:
                return f"segments are not ascending: {after.first_entry} follows {before.first_entry}"
        for segment in self.segments:
            if len(segment.bookies) != self.ensemble_size:
                return f"segment at {segment.first_entry} has {len(segment.bookies)} bookies, not {self.ensemble_size}"
        return None

    def _problem_of_end(self) -> str | None:
        if self.length < 0 or self.last_entry < -1:
            return f"length {self.length} or last entry {self.last_entry} is negative"
        if self.state is not LedgerState.CLOSED and (self.length, self.last_entry) != (0, -1):
            return f"state {self.state.name} cannot have length {self.length} and last entry {self.last_entry}"
        return None
