"""What auto-recovery counts in one process. Event loop; read by anybody."""

from dataclasses import asdict, dataclass

__all__ = ["Counters"]


@dataclass(slots=True)
class Counters:
    """Since the start, but for `*_now` and what an auditor's last check found."""

    ledgers: int = 0
    """Fully replicated, or found to be."""
    ledgers_failed: int = 0
    """Rounds that left a ledger as it was, or with fragments that still lack replicas."""
    ledgers_deferred: int = 0
    """Held back: written to by somebody, or failed before."""
    ledgers_recovered: int = 0
    """Open ledgers that were fenced and closed, because a bookie of theirs was gone for too long."""
    ledgers_unrecoverable: int = 0
    """Rounds in which an entry had no replica left."""
    fragments: int = 0
    entries: int = 0
    bytes: int = 0
    paused_ms: int = 0
    """For bookies with more room to go first."""

    sessions_lost: int = 0
    """Sessions with the metadata store that expired: locks and office went with them, and all began anew."""
    elected_now: int = 0
    elections: int = 0
    bookies_lost_now: int = 0
    bookie_audits: int = 0
    audits_delayed: int = 0
    marks: int = 0
    """Ledgers that this auditor found to lack replicas."""
    ledgers_checked: int = 0
    checks_failed: int = 0
    fragments_lacking: int = 0
    """Of the last check of all ledgers, as the next four are of theirs."""
    segments_misplaced: int = 0
    segments_placed_softly: int = 0
    ledgers_without_replica: int = 0
    ledgers_below_ack_quorum: int = 0
    ledgers_below_write_quorum: int = 0

    def as_stats(self) -> dict[str, int]:
        """By the names under which they are shown."""
        return {f"autorecovery_{name}": value for name, value in asdict(self).items()}
