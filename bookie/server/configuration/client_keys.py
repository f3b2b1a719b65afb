"""The keys of the client that a bookie runs for auto-recovery and repair; they are passed to it unchanged. Pure data.

They are Apache BookKeeper's keys of the client, with the defaults of ours. `APPLICATIONS` names the others, which only
clients of applications have.
"""

from bookie.server.configuration.key import Group, Key

__all__ = ["APPLICATIONS", "CLIENT", "CLIENT_KEYS", "SHARED"]

CLIENT = Group(
    "The bookie's own client, for auto-recovery and repair",
    (
        Key("ensemblePlacementPolicy", "", str, "rack", "Placement policy for copies: `rack`, `region`, `zone`,"
            " `default`: docs/placement.md."),
        Key("reppDnsResolverClass", "", str, "", "Resolver of the locations of bookies, `module:factory`."),
        Key("networkTopologyScriptFileName", "", str, "", "Script that prints the locations of bookies."),
        Key("networkTopologyScriptNumberArgs", "", int, "100", "Maximum number of addresses for one call of it.",
            low=1),
        Key("networkTopologyStabilizePeriodSeconds", "", int, "0", "How long bookies that have left remain candidates.",
            unit="s"),
        Key("minNumRacksPerWriteQuorum", "", int, "2", "Number of racks in each write quorum.", low=1),
        Key("enforceMinNumRacksPerWriteQuorum", "", bool, "false", "Choose no ensemble in fewer racks."),
        Key("enforceMinNumFaultDomainsForWrite", "", bool, "false", "Acknowledge no add in fewer racks or regions."),
        Key("ignoreLocalNodeInPlacementPolicy", "", bool, "false", "Do not prefer this bookie's own rack or region."),
        Key("useHostnameResolveLocalNodePlacementPolicy", "", bool, "false", "Resolve this bookie's location by its"
            " host name instead of its address."),
        Key("minNumZonesPerWriteQuorum", "", int, "2", "Minimum number of zones in each write quorum.", low=1),
        Key("desiredNumZonesPerWriteQuorum", "", int, "3", "Desired number of zones in each write quorum.", low=1),
        Key("enforceStrictZoneawarePlacement", "", bool, "true", "Choose no ensemble in fewer zones."),
        Key("reppRegionsToWrite", "", str, "", "Names of the regions, separated by semicolons."),
        Key("reppMinimumRegionsForDurability", "", int, "-1", "Number of regions in each ack quorum; -1 means 2 where"
            " regions are named, and 0 otherwise.", low=-1, differs="2"),
        Key("reppEnableDurabilityEnforcementInReplace", "", bool, "true", "Hold replacements to it as well."),
        Key("reppEnableValidation", "", bool, "true", "Check chosen ensembles against it."),
        Key("reppDisableDurabilityFeatureName", "", str, "repp_disable_durability_enforcement", "Feature that lifts the"
            " rule."),
        Key("reppDisallowBookiePlacementInRegionFeatureName", "", str, "", "Prefix of the features that exclude"
            " regions."),
        Key("disableEnsembleChangeFeatureName", "", str, "disable_ensemble_change", "Feature that forbids to replace"
            " bookies of a ledger while it is recovered."),
        Key("enabledFeatures", "", str, "", "Names of the features that are on, separated by commas."),
        Key("diskWeightBasedPlacementEnabled", "", bool, "false", "Prefer bookies with more free space for copies."),
        Key("bookieMaxMultipleForWeightBasedPlacement", "", int, "3", "No weight counts more than this multiple of the"
            " median; 0: no cap."),
        Key("diskWeightCapMode", "", str, "median", "Whether weights are capped at a multiple of the median, or of the"
            " smallest weight.", choices=("median", "min")),
        Key("placementLoadWeight", "", float, "0", "How much the load of bookies counts beside their free space, from"
            " 0, not at all, to 1.", high=1),
        Key("getBookieInfoIntervalSeconds", "", int, "86400", "Interval between requests for the free space of all"
            " bookies.", low=1, unit="s"),
        Key("getBookieInfoRetryIntervalSeconds", "", int, "60", "Delay before bookies that did not answer are asked"
            " again.", low=1, unit="s"),
        Key("getBookieInfoTimeoutSecs", "", int, "5", "How long to wait for these answers.", unit="s"),
        Key("clientTrustStore", "", str, "", "PEM file with authorities. If it is set, connections to other bookies"
            " are encrypted."),
        Key("clientKeyStore", "", str, "", "PEM file with the key, without a password, that belongs to"
            " `tlsCertificatePath`. If it is set, that certificate is presented to other bookies."),
        Key("tlsHostnameVerificationEnabled", "", bool, "true", "Whether the certificates of other bookies must have"
            " their host names.", differs="false"),
        Key("clientAuthProviderFactoryClass", "", str, "", "Authentication provider for connections to other"
            " bookies."),
        Key("clientAuthTokenFile", "", str, "", "File with the token that its provider `token` sends; without it, the"
            " environment variable `BOOKIE_AUTH_TOKEN` has the token."),
        Key("numChannelsPerBookie", "", int, "1", "Number of connections to each bookie.", low=1, high=1000),
        Key("clientConnectTimeoutMillis", "", int, "10000", "How long a connection may take.", unit="ms"),
        Key("addEntryTimeoutSec", "", int, "5", "How long an add waits for a bookie.", unit="s"),
        Key("addEntryQuorumTimeoutSec", "", int, "-1", "How long an add waits for its ack quorum while a ledger is"
            " recovered; at 0 and below, without limit.", low=-1, unit="s"),
        Key("readEntryTimeoutSec", "", int, "5", "How long any other request waits for a bookie.", unit="s"),
        Key("throttle", "", int, "0", "Maximum number of adds and of reads per second of a ledger that is recovered;"
            " 0: no limit.", low=-1, differs="5000"),
        Key("delayEnsembleChange", "", bool, "false", "Replace a bookie of a ledger that is recovered only when an ack"
            " quorum depends on it."),
        Key("maxNumEnsembleChanges", "", int, "2147483647", "Maximum number of such replacements in a ledger."),
        Key("digestType", "", str, "CRC32", "Digest of ledgers whose metadata do not tell it.",
            choices=("crc32", "mac", "crc32c", "dummy")),
        Key("passwd", "", str, "", "Password of ledgers whose metadata do not tell it."),
        Key("enableDigestTypeAutodetection", "", bool, "true", "Whether the digest in the metadata has precedence."),
        Key("batchReadEnabled", "", bool, "true", "Read in batches from bookies that support them."),
        Key("recoveryReadBatchSize", "", int, "64", "Maximum number of concurrent reads while a ledger is recovered."
            " There is one at first, and twice as many with each entry that is found.", low=1, high=100_000,
            differs="1, a round trip for each entry"),
        Key("stickyReadSEnabled", "", bool, "false", "Read a ledger from one bookie as long as it answers."),
        Key("reorderReadSequenceEnabled", "", bool, "true", "Read from slow or failed bookies last."),
        Key("readReorderThresholdPendingRequests", "", int, "0", "Read from the least busy replica first if the first"
            " one has that many more pending requests; 0: never."),
        Key("ensembleRandomReadReordering", "", bool, "false", "Read from the replicas in random order."),
        Key("enableBookieFailureTracking", "", bool, "true", "Remember bookies that failed."),
        Key("bookieFailureHistoryExpirationMSec", "", int, "60000", "How long.", unit="ms"),
        Key("firstSpeculativeReadTimeout", "", int, "2000", "How long a read waits before it asks the next replica as"
            " well; at 0 and below, it only waits.", low=-1, unit="ms"),
        Key("maxSpeculativeReadTimeout", "", int, "2000", "Longest such wait.", low=-1, unit="ms"),
        Key("speculativeReadTimeoutBackoffMultiplier", "", float, "2", "Factor by which it grows.", low=1),
        Key("firstSpeculativeReadLACTimeout", "", int, "1500", "The same for reads of the LAC.", low=-1, unit="ms"),
        Key("maxSpeculativeReadLACTimeout", "", int, "5000", "The same for reads of the LAC.", low=-1, unit="ms"),
        Key("speculativeReadLACTimeoutBackoffMultiplier", "", float, "2", "The same for reads of the LAC.", low=1),
        Key("bookieHealthCheckEnabled", "", bool, "false", "Exclude bookies that fail often from placement."),
        Key("bookieHealthCheckIntervalSeconds", "", int, "60", "Interval in which failures are counted.", low=1,
            unit="s"),
        Key("bookieErrorThresholdPerInterval", "", int, "100", "Number of failures in it.", low=1),
        Key("bookieConnectionErrorQuarantineEnabled", "", bool, "false", "Whether failed connections count."),
        Key("bookieQuarantineTimeSeconds", "", int, "1800", "How long a bookie is excluded.", unit="s"),
        Key("bookieQuarantineRatio", "", float, "1", "Probability with which it is.", high=1),
    ),
)  # fmt: skip

CLIENT_KEYS = [key.name for key in CLIENT.keys]

SHARED = ("diskUsageWarnThreshold", "nettyMaxFrameSizeBytes", "zkTimeout")
"""Keys of the bookie that hold for its client as well."""

APPLICATIONS = {
    "auto-recovery needs requests that the V2 protocol does not have": "silentConnectionTimeoutSec useV2WireProtocol",
    "auto-recovery creates no ledgers": "opportunisticStriping storeSystemTimeAsLedgerCreationTime",
    "auto-recovery closes the ledgers that it opens, and leaves the explicit LAC to their writers":
        "explicitLacInterval",
    "auto-recovery has limits of its own for copies in flight; these are of the handles of applications":
        "maxOutstandingAddBytes maxOutstandingAdds maxReadBytesInFlight maxWaitingAddBytes waitTimeoutOnBackpressureMs",
    "only the client for threads, which auto-recovery does not use, has it":
        "callTimeoutSec maxDirectConnectionsPerBookie",
    "for the bookie's client, `clientTrustStore` switches TLS on": "tlsEnabled",
}  # fmt: skip
"""Keys of the client that have no effect in a bookie, by the reason."""
