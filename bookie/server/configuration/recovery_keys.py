"""The keys of auto-recovery, which go to its service as they are. Pure data, a part of `keys`."""

from bookie.server.configuration.key import Group, Key

__all__ = ["RECOVERY", "RECOVERY_KEYS"]

RECOVERY = Group(
    "Auto-recovery",
    (
        Key("autoRecoveryDaemonEnabled", "", bool, "false", "Look for ledgers that lack replicas, and copy them:"
            " docs/operations.md. What follows is of use only then."),
        Key("lostBookieRecoveryDelay", "", int, "0", "A bookie may be away so long before its ledgers are copied."
            " The first auditor of a cluster puts it into the metadata store, which counts from then on.",
            unit="s"),
        Key("auditorPeriodicBookieCheckInterval", "", int, "86400", "Pause between searches for bookies that"
            " ledgers name and nobody sees; 0: once at each election.", unit="s"),
        Key("auditorPeriodicCheckInterval", "", int, "604800", "Pause between checks of every ledger; 0: never.",
            unit="s"),
        Key("auditorLedgerVerificationPercentage", "", int, "0", "How many of the entries between the first and"
            " the last of a bookie's part such a check reads too.", high=100, unit="%"),
        Key("auditorPeriodicPlacementPolicyCheckInterval", "", int, "0", "Pause between checks of placement; 0:"
            " never.", unit="s"),
        Key("repairedPlacementPolicyNotAdheringBookieEnabled", "", bool, "false", "Copy what breaks it."),
        Key("auditorReplicasCheckInterval", "", int, "0", "Pause between counts of replicas; 0: never.", unit="s"),
        Key("auditorMaxNumberOfConcurrentOpenLedgerOperations", "", int, "500", "Ledgers that a check looks at at"
            " a time.", low=1, high=100_000),
        Key("inFlightReadEntryNumInLedgerChecker", "", int, "-1", "Reads of a check at a time; -1: 100.", low=-1,
            high=100_000, differs="-1: any number"),
        Key("storeSystemTimeAsLedgerUnderreplicatedMarkTime", "", bool, "true", "A mark tells when it was made."),
        Key("openLedgerRereplicationGracePeriod", "", int, "30000", "A writer has so long to replace a lost bookie;"
            " then its ledger is fenced and closed.", unit="ms"),
        Key("lockReleaseOfFailedLedgerGracePeriod", "", int, "300000", "Longest rest after failures.", unit="ms"),
        Key("rwRereplicateBackoffMs", "", int, "5000", "Pause after any failure.", unit="ms"),
        Key("recoveryBatchReadEnabled", "", bool, "true", "Copy in batches what bookies give in batches; otherwise by"
            " single reads.", differs="false: its bookies before 4.17 know no batch reads; here they are not asked"),
        Key("rereplicationEntryBatchSize", "", int, "10", "Single reads at a time where batches cannot be had."),
        Key("replicationRateByBytes", "", int, "-1", "Bytes a second that copies may write; -1: no limit.",
            low=-1),
        Key("weightPacedReplicationEnabled", "", bool, "false", "Pause after each ledger, the longer the less room"
            " there is here; needs `diskWeightBasedPlacementEnabled`."),
        Key("weightPacedReplicationMaxPauseMs", "", int, "10000", "At most so long.", unit="ms"),
        Key("ensemblePlacementPolicy", "", str, "rack", "Where copies go: `rack`, `region`, `zone`, `default`."),
        Key("reppDnsResolverClass", "", str, "", "Resolver of places, `module:factory`."),
        Key("networkTopologyScriptFileName", "", str, "", "Script that tells the places of bookies."),
        Key("clientTrustStore", "", str, "", "PEM file with authorities: copies travel encrypted."),
        Key("clientAuthProviderFactoryClass", "", str, "", "How it authenticates to bookies."),
        Key("diskWeightBasedPlacementEnabled", "", bool, "false", "Copies go rather to bookies with more room."),
    ),
)  # fmt: skip

RECOVERY_KEYS = [key.name for key in RECOVERY.keys]
