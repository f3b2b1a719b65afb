"""The settings of auto-recovery: Apache BookKeeper's keys and our fields. Any thread. Fields ending in `_s` are
seconds.
"""

from dataclasses import dataclass

from bookie.client.config import MS, SettingsOf, key

__all__ = ["RecoverySettings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoverySettings(SettingsOf):
    """The settings of auto-recovery. Defaults are those of Apache BookKeeper."""

    lost_bookie_delay_s: int = key("lostBookieRecoveryDelay", 0)
    """How long a bookie may be away before it is lost; a value in the metadata store has precedence."""
    check_interval_s: float = key("auditorPeriodicCheckInterval", 604_800.0)
    """The interval of the check of all ledgers; 0 disables it."""
    bookie_check_interval_s: float = key("auditorPeriodicBookieCheckInterval", 86_400.0)
    """The interval of the check for lost bookies; at 0 it runs only when an auditor is elected."""
    placement_check_interval_s: float = key("auditorPeriodicPlacementPolicyCheckInterval", 0.0)
    replicas_check_interval_s: float = key("auditorReplicasCheckInterval", 0.0)
    full_check_interval_s: float = key("auditorFullCheckInterval", 604_800.0)
    """The interval of the search for holes inside fragments; 0 disables it."""
    full_check_lists_per_s: int = key("auditorFullCheckListsPerSecond", 20, low=1)
    verification_percentage: int = key("auditorLedgerVerificationPercentage", 0)
    ledgers_at_once: int = key("auditorMaxNumberOfConcurrentOpenLedgerOperations", 500, low=1)
    reads_at_once: int = key("inFlightReadEntryNumInLedgerChecker", -1, low=-1)
    """The reads that a check has in flight; 100 if it is not positive."""
    repair_placement: bool = key("repairedPlacementPolicyNotAdheringBookieEnabled", default=False)
    mark_time_stored: bool = key("storeSystemTimeAsLedgerUnderreplicatedMarkTime", default=True)
    open_ledger_grace_s: float = key("openLedgerRereplicationGracePeriod", 30.0, scale=MS)
    failed_ledger_hold_s: float = key("lockReleaseOfFailedLedgerGracePeriod", 300.0, scale=MS)
    backoff_s: float = key("rwRereplicateBackoffMs", 5.0, scale=MS)
