"""The counters of auto-recovery in one process. They are written on the event loop, and may be read from any thread."""

from dataclasses import asdict, dataclass

__all__ = ["Counters"]


@dataclass(slots=True)
class Counters:
    """Counters since the start of the process; `*_now` are gauges, and some have the results of an auditor's last
    check.
    """

    ledgers: int = 0
    """Ledgers that were fully replicated, or found to be."""
    ledgers_failed: int = 0
    """Rounds after which a ledger still lacked replicas."""
    ledgers_deferred: int = 0
    """Ledgers held back because they may still be written to."""
    ledgers_recovered: int = 0
    """Open ledgers that were fenced and closed because one of their bookies was away for too long."""
    ledgers_unrecoverable: int = 0
    """Rounds in which an entry had no replica left."""
    fragments: int = 0
    entries: int = 0
    bytes: int = 0
    paused_ms: int = 0
    """Milliseconds of pauses in which bookies with more free space went first, or room was waited for."""
    targets_short: int = 0
    """Bookies that were not taken as targets because they were short of room."""

    sessions_lost: int = 0
    """Sessions with the metadata store that expired. Locks and office were lost, and the work began again."""
    elected_now: int = 0
    elections: int = 0
    bookies_lost_now: int = 0
    bookie_audits: int = 0
    audits_delayed: int = 0
    marks: int = 0
    """Ledgers that this auditor marked."""
    ledgers_checked: int = 0
    checks_failed: int = 0
    holes_found: int = 0
    """Entries that live bookies lacked inside their fragments."""
    holes_filled: int = 0
    """Entries that were written to them again, or to bookies that replaced them."""
    fragments_lacking: int = 0
    """Fragments with missing entries in the last check of all ledgers. The following five have the results of their
    checks.
    """
    segments_misplaced: int = 0
    segments_placed_softly: int = 0
    ledgers_without_replica: int = 0
    ledgers_below_ack_quorum: int = 0
    ledgers_below_write_quorum: int = 0

    def as_stats(self) -> dict[str, int]:
        """Return the counters by the names of their metrics."""
        return {f"autorecovery_{name}": value for name, value in asdict(self).items()}
