"""What a scrub finds: kinds of damage, and the record that each is about. Values; any thread."""

from dataclasses import dataclass
from enum import Enum

__all__ = ["Finding", "Kind"]


class Kind(Enum):
    """What is wrong. `value` is its name in metrics."""

    DIGEST = "digest"
    """The digest of an entry does not hold."""
    PLACE = "place"
    """Where the index has an entry lies none, or another one."""
    ORPHAN = "orphan"
    """The log has an entry of a ledger that is known here, and the index has it nowhere."""
    UNREADABLE = "unreadable"
    """The disk does not give an entry log, or it is none."""
    MAP = "map"
    """The ledgers map of a closed log contradicts its records. Readers do not use it."""
    TORN = "torn"
    """A log holds bytes that are no record. Entries behind them are found by the index all the same."""
    INDEX = "index"
    """A part of the location index cannot be read."""
    READ = "read"
    """Not the scrub but a client's read met it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One record, or one entry log where `ledger` is -1."""

    kind: Kind
    directory: str
    log_id: int = -1
    ledger: int = -1
    entry: int = -1
    offset: int = -1
    """Of the length word."""
    why: str = ""

    @property
    def is_entry(self) -> bool:
        """Whether an entry has to be repaired."""
        return self.ledger >= 0

    def facts(self) -> dict[str, object]:
        """For a log line."""
        told: dict[str, object] = {"kind": self.kind.value, "directory": self.directory}
        if self.log_id >= 0:
            told["log"] = f"{self.log_id:x}.log"
        if self.is_entry:
            told |= {"ledger": self.ledger, "entry": self.entry}
        if self.offset >= 0:
            told["offset"] = self.offset
        return told | ({"why": self.why} if self.why else {})
