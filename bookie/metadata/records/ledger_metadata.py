"""The metadata of one ledger: quorum sizes, state, and which bookies hold which entries. Frozen; any thread.

`ledger_codec` converts them to the bytes of the metadata store and back.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

LEDGER_METADATA_VERSION = 3
LEDGER_IDS_END = 1 << 63


class LedgerState(IntEnum):
    """The states of a ledger, with their numbers in the stored format."""

    OPEN = 1
    IN_RECOVERY = 2
    CLOSED = 3


class DigestType(IntEnum):
    """The digest types with their numbers in the stored format; the Java client's public enum has other numbers."""

    CRC32 = 1
    HMAC = 2
    CRC32C = 3
    DUMMY = 4


@dataclass(frozen=True, slots=True)
class Segment:
    """The ensemble for the entries from `first_entry` on, up to the next segment. The order of the bookies is the
    striping.

    Attributes:
        first_entry: The id of the first entry.
        bookies: The ids of the bookies.
    """

    first_entry: int
    bookies: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerMetadata:
    """The metadata of one ledger. Make changed copies with `dataclasses.replace`.

    Attributes:
        ensemble_size: The number of bookies in each ensemble.
        write_quorum: The number of bookies that store each entry.
        ack_quorum: The number of bookies that must store an entry before it is acknowledged.
        segments: The ensembles in ascending order of their first entries.
        state: Whether the ledger is open, in recovery or closed.
        password: The ledger's password.
        custom: The custom metadata.
    """

    ensemble_size: int
    write_quorum: int
    ack_quorum: int
    segments: tuple[Segment, ...]
    state: LedgerState = LedgerState.OPEN
    length: int = 0
    """Payload bytes of all entries; 0 unless the ledger is closed."""
    last_entry: int = -1
    """The id of the last entry; -1 for an empty ledger, and unless the ledger is closed."""
    digest_type: DigestType | None = None
    """None in ledgers older than digest types, which have no password either."""
    password: bytes = field(default=b"", repr=False)
    ctime_ms: int | None = None
    """The creation time in milliseconds since 1970; if it is None, the store's own creation time is used."""
    custom: Mapping[str, bytes] = field(default_factory=dict)
    token: int = 0
    """A random number by which a creator recognises its own node after a lost answer; 0 after any rewrite."""
    format_version: int = LEDGER_METADATA_VERSION
    """The version of the stored format, which a rewrite keeps."""

    def problem(self) -> str | None:
        """Return the first rule that the metadata violate, in words, or None if they are valid."""
        if not 1 <= self.ack_quorum <= self.write_quorum <= self.ensemble_size:
            return (
                f"quorums must be 1 <= ack <= write <= ensemble, "
                f"not {self.ack_quorum}, {self.write_quorum}, {self.ensemble_size}"
            )
        return self._problem_of_segments() or self._problem_of_end()

    def segment_of(self, entry_id: int) -> Segment:
        """Return the segment of an entry: the last one that starts at or before it.

        Args:
            entry_id: The id of the entry.
        """
        return next(segment for segment in reversed(self.segments) if segment.first_entry <= entry_id)

    def write_set(self, entry_id: int) -> tuple[str, ...]:
        """Return the bookies of an entry, in the order of the striping.

        Args:
            entry_id: The id of the entry.
        """
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
