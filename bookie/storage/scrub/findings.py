"""What a scrub finds: the kinds of damage, and the record that each finding is about. Values, for any thread."""

from dataclasses import dataclass
from enum import Enum

__all__ = ["Finding", "Kind"]


class Kind(Enum):
    """The kinds of damage. `value` is the name in metrics."""

    DIGEST = "digest"
    """The digest of an entry is wrong."""
    PLACE = "place"
    """The index points at a place where there is no entry, or another one."""
    ORPHAN = "orphan"
    """The log has an entry of a ledger that is known here, but the index does not have the entry at all."""
    UNREADABLE = "unreadable"
    """The disk cannot read an entry log, or the file is not an entry log."""
    MAP = "map"
    """The ledgers map of a closed log contradicts its records. Readers do not use the map."""
    TORN = "torn"
    """A log holds bytes that are not a record. The index still finds the entries after them."""
    INDEX = "index"
    """A part of the location index cannot be read."""
    READ = "read"
    """A client's read found the damage, not the scrub."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One damaged record, or one damaged entry log if `ledger` is -1."""

    kind: Kind
    directory: str
    log_id: int = -1
    ledger: int = -1
    entry: int = -1
    offset: int = -1
    """The offset of the record's length word."""
    why: str = ""

    @property
    def is_entry(self) -> bool:
        """Whether a single entry is to be repaired."""
        return self.ledger >= 0

    def facts(self) -> dict[str, object]:
        """Return the fields for a log line."""
        facts: dict[str, object] = {"kind": self.kind.value, "directory": self.directory}
        if self.log_id >= 0:
            facts["log"] = f"{self.log_id:x}.log"
        if self.is_entry:
            facts |= {"ledger": self.ledger, "entry": self.entry}
        if self.offset >= 0:
            facts["offset"] = self.offset
        return facts | ({"why": self.why} if self.why else {})
