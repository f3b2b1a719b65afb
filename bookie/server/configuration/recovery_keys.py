"""The keys of auto-recovery, which are passed to its service unchanged. Pure data, a part of `keys`."""

from bookie.server.configuration.key import Group, Key

__all__ = ["RECOVERY", "RECOVERY_KEYS"]

RECOVERY = Group(
    "Auto-recovery",
    (
        Key("autoRecoveryDaemonEnabled", "", bool, "false", "Find ledgers that lack replicas, and copy them:"
            " docs/operations.md. The following keys have an effect only with it."),
        Key("lostBookieRecoveryDelay", "", int, "0", "How long a bookie may be missing before its ledgers are copied."
            " The first auditor of a cluster puts the value into the metadata store; after that, the value there"
            " counts.", unit="s"),
        Key("auditorPeriodicBookieCheckInterval", "", int, "86400", "Interval between searches for bookies that"
            " ledgers name and that are not registered; 0: once after each election.", unit="s"),
        Key("auditorPeriodicCheckInterval", "", int, "604800", "Interval between checks of every ledger; 0: never.",
            unit="s"),
        Key("auditorLedgerVerificationPercentage", "", int, "0", "Share of the entries between the first and the last"
            " one of a bookie's part that such a check also reads.", high=100, unit="%"),
        Key("auditorPeriodicPlacementPolicyCheckInterval", "", int, "0", "Interval between checks of placement; 0:"
            " never.", unit="s"),
        Key("repairedPlacementPolicyNotAdheringBookieEnabled", "", bool, "false", "Copy entries whose placement"
            " violates the policy."),
        Key("auditorReplicasCheckInterval", "", int, "0", "Interval between counts of replicas; 0: never.", unit="s"),
        Key("auditorFullCheckInterval", "", int, "604800", "Interval between searches for holes inside the parts of"
            " live bookies, which are then filled; 0: never.", unit="s"),
        Key("auditorFullCheckListsPerSecond", "", int, "20", "Maximum number of lists of entries per second that such a"
            " search requests.", low=1, high=100_000),
        Key("auditorMaxNumberOfConcurrentOpenLedgerOperations", "", int, "500", "Maximum number of ledgers that a"
            " check examines at a time.", low=1, high=100_000),
        Key("inFlightReadEntryNumInLedgerChecker", "", int, "-1", "Maximum number of concurrent reads of a check; -1"
            " means 100.", low=-1, high=100_000, differs="-1, which means any number"),
        Key("storeSystemTimeAsLedgerUnderreplicatedMarkTime", "", bool, "true", "Store in each mark when it was"
            " created."),
        Key("openLedgerRereplicationGracePeriod", "", int, "30000", "Time for a writer to replace a lost bookie,"
            " before its ledger is fenced and closed.", unit="ms"),
        Key("lockReleaseOfFailedLedgerGracePeriod", "", int, "300000", "Longest delay before a ledger is tried again"
            " after repeated failures.", unit="ms"),
        Key("rwRereplicateBackoffMs", "", int, "5000", "Delay after any failure.", unit="ms"),
        Key("recoveryBatchReadEnabled", "", bool, "true", "Copy with batch reads from bookies that support them;"
            " otherwise with single reads.", differs="false; its bookies before 4.17 do not support batch reads, and"
            " ours do not send them any"),
        Key("rereplicationEntryBatchSize", "", int, "10", "Number of concurrent single reads, if batch reads are not"
            " possible."),
        Key("replicationRateByBytes", "", int, "-1", "Maximum number of bytes per second that copies write; -1 means"
            " no limit.", low=-1),
        Key("roomAwareReplicationEnabled", "", bool, "true", "Place copies on bookies that these would fill beyond"
            " `diskUsageWarnThreshold` only if no others are left, and then after a pause."),
        Key("weightPacedReplicationEnabled", "", bool, "false", "Pause after each ledger, longer if this bookie has"
            " less free space; needs `diskWeightBasedPlacementEnabled`."),
        Key("weightPacedReplicationMaxPauseMs", "", int, "10000", "Longest such pause, and the pause"
            " when every bookie is short of room.", unit="ms"),
    ),
)  # fmt: skip

RECOVERY_KEYS = [key.name for key in RECOVERY.keys]
