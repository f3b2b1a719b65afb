"""Every setting of the client: upstream's key, our field, default, unit. Frozen; any thread.

`ClientConfig.of` takes keys as Apache BookKeeper spells them or as the fields are called, and values as they are or as
text. Times are seconds in the fields, whatever unit upstream's key has.
"""

import contextlib
import difflib
import re
from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from typing import Any, Self

from bookie.errors import ConfigurationError

__all__ = ["ClientConfig", "key", "MS", "SettingsOf"]

MS = 0.001
ROUND = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
FRAME_BYTES_MIN = 128


JAVA_POLICY = re.compile(r"(?:[\w.]+\.)?(\w+?)(?:aware)?ensembleplacementpolicy(?:impl)?")


def key(
    name: str,
    default: Any,
    *,
    low: float = 0,
    scale: float = 1,
    choices: tuple[str, ...] = (),
    long: re.Pattern[str] | None = None,
) -> Any:
    """A field under upstream's `name`; `scale` turns the key's unit into the field's.

    `choices` are taken in either case; `long` has a group that is one of them, in what Java calls it, in lower case.
    """
    metadata = {"key": name, "low": low, "scale": scale, "choices": choices, "long": long}
    return field(default=default, metadata=metadata)


class SettingsOf:
    """A frozen dataclass whose fields are made by `key`."""

    __slots__ = ()

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """From keys and values. ConfigurationError names the first that is wrong, and what would be right."""
        known: dict[str, Field[Any]] = {}
        for one in fields(cls):  # type: ignore[arg-type]  # its subclasses are dataclasses
            known[one.name] = known[one.metadata["key"]] = one
        values: dict[str, Any] = {}
        for name, value in given.items():
            if name not in known:
                near = difflib.get_close_matches(name, known, n=1)
                raise ConfigurationError(f"{name}: no such setting{f'; do you mean {near[0]}?' if near else ''}")
            one = known[name]
            if one.name in values:
                raise ConfigurationError(f"{name}: given twice, as {one.metadata['key']} and as {one.name}")
            values[one.name] = _value(name, one, value, scaled=name == one.metadata["key"])
        return cls(**values)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientConfig(SettingsOf):
    """The defaults are upstream's where the meaning is the same."""

    # Connections.
    use_v2_wire_protocol: bool = key("useV2WireProtocol", default=False)
    frame_bytes_max: int = key("nettyMaxFrameSizeBytes", 5 << 20, low=FRAME_BYTES_MIN)
    channels_per_bookie: int = key("numChannelsPerBookie", 1, low=1)
    connect_timeout_s: float = key("clientConnectTimeoutMillis", 10.0, scale=MS)
    add_timeout_s: float = key("addEntryTimeoutSec", 5.0)
    read_timeout_s: float = key("readEntryTimeoutSec", 5.0)
    bookie_info_timeout_s: float = key("getBookieInfoTimeoutSecs", 5.0)
    add_quorum_timeout_s: float = key("addEntryQuorumTimeoutSec", -1.0, low=-1)
    """Off below 0."""
    session_timeout_s: float = key("zkTimeout", 10.0, scale=MS)
    tls_trust_store: str = key("clientTrustStore", "")
    """A PEM file of authorities; with it, or `tls_enabled`, connections are encrypted."""
    tls_enabled: bool = key("tlsEnabled", default=False)
    tls_certificate: str = key("tlsCertificatePath", "")
    tls_key: str = key("tlsKeyStore", "")
    tls_hostname_verification: bool = key("tlsHostnameVerificationEnabled", default=True)
    """Upstream's default is false."""
    auth_provider: str = key("clientAuthProviderFactoryClass", "")

    # Writing.
    throttle_per_s: int = key("throttle", 0, low=-1)
    """Requests of a handle each second, off at 0 (upstream: 5000)."""
    outstanding_max: int = key("maxOutstandingAdds", 10_000, low=1)
    """Adds of a handle that wait for their answers; more make the writer wait. Ours.

    The table of those that are pending stays as large as it once was: some 400 bytes for each at most, and no more.
    """
    outstanding_bytes_max: int = key("maxOutstandingAddBytes", 64 << 20, low=1 << 20)
    """Their bytes. Ours."""
    explicit_lac_interval_s: float = key("explicitLacInterval", 0.0, scale=MS)
    """Off at 0."""
    delay_ensemble_change: bool = key("delayEnsembleChange", default=False)
    ensemble_changes_max: int = key("maxNumEnsembleChanges", 2**31 - 1)
    opportunistic_striping: bool = key("opportunisticStriping", default=False)
    store_creation_time: bool = key("storeSystemTimeAsLedgerCreationTime", default=False)

    backpressure_wait_s: float = key("waitTimeoutOnBackpressureMs", -1.0, low=-1, scale=MS)
    """So long an add waits for room before it ends with TooManyRequests, for ever below 0."""
    ensemble_change_feature: str = key("disableEnsembleChangeFeatureName", "disable_ensemble_change")
    features: str = key("enabledFeatures", "")
    """Those that are on from the start (`features`), separated by commas. Ours."""

    # Reading.
    speculative_read_first_s: float = key("firstSpeculativeReadTimeout", 2.0, low=-1, scale=MS)
    """Off at 0 and below; so are the next ones."""
    speculative_read_max_s: float = key("maxSpeculativeReadTimeout", 2.0, low=-1, scale=MS)
    speculative_read_backoff: float = key("speculativeReadTimeoutBackoffMultiplier", 2.0, low=1)
    speculative_lac_first_s: float = key("firstSpeculativeReadLACTimeout", 1.5, low=-1, scale=MS)
    speculative_lac_max_s: float = key("maxSpeculativeReadLACTimeout", 5.0, low=-1, scale=MS)
    speculative_lac_backoff: float = key("speculativeReadLACTimeoutBackoffMultiplier", 2.0, low=1)
    batch_read_enabled: bool = key("batchReadEnabled", default=True)
    sticky_reads: bool = key("stickyReadSEnabled", default=False)
    reorder_reads: bool = key("reorderReadSequenceEnabled", default=True)
    random_read_reordering: bool = key("ensembleRandomReadReordering", default=False)
    reorder_pending_threshold: int = key("readReorderThresholdPendingRequests", 0)
    bookie_failure_tracking: bool = key("enableBookieFailureTracking", default=True)
    bookie_failure_expiry_s: float = key("bookieFailureHistoryExpirationMSec", 60.0, scale=MS)
    digest_autodetection: bool = key("enableDigestTypeAutodetection", default=True)
    bytes_in_flight_max: int = key("maxReadBytesInFlight", 16 << 20, low=1 << 16)
    """Of one range that is read by batches. Ours."""

    # Recovery and replication.
    recovery_read_batch: int = key("recoveryReadBatchSize", 1, low=1)
    recovery_batch_reads: bool = key("recoveryBatchReadEnabled", default=True)
    """Whether ledgers are copied in batches where bookies offer them, and `batch_read_enabled`. Upstream: false."""
    admin_digest_type: str = key("digestType", "CRC32", choices=("CRC32", "MAC", "CRC32C", "DUMMY"))
    admin_password: str = key("passwd", "")
    rereplication_entries: int = key("rereplicationEntryBatchSize", 10, low=-1)
    replication_bytes_per_s: int = key("replicationRateByBytes", -1, low=-1)
    weight_paced_replication: bool = key("weightPacedReplicationEnabled", default=False)
    weight_paced_pause_max_s: float = key("weightPacedReplicationMaxPauseMs", 10.0, scale=MS)

    # Placement.
    placement_policy: str = key(
        "ensemblePlacementPolicy", "rack", choices=("default", "rack", "region", "zone"), long=JAVA_POLICY
    )
    """Java's class names are understood too."""
    resolver: str = key("reppDnsResolverClass", "")
    """`module:factory` of a resolver of ours; empty: the script."""
    topology_script: str = key("networkTopologyScriptFileName", "")
    topology_script_arguments: int = key("networkTopologyScriptNumberArgs", 100, low=1)
    topology_stabilize_s: float = key("networkTopologyStabilizePeriodSeconds", 0.0)
    racks_min: int = key("minNumRacksPerWriteQuorum", 2, low=1)
    racks_enforced: bool = key("enforceMinNumRacksPerWriteQuorum", default=False)
    fault_domains_enforced: bool = key("enforceMinNumFaultDomainsForWrite", default=False)
    local_node_ignored: bool = key("ignoreLocalNodeInPlacementPolicy", default=False)
    local_node_by_hostname: bool = key("useHostnameResolveLocalNodePlacementPolicy", default=False)
    zones_min: int = key("minNumZonesPerWriteQuorum", 2, low=1)
    zones_desired: int = key("desiredNumZonesPerWriteQuorum", 3, low=1)
    zones_strict: bool = key("enforceStrictZoneawarePlacement", default=True)
    regions: str = key("reppRegionsToWrite", "")
    """Separated by semicolons."""
    regions_durable_min: int = key("reppMinimumRegionsForDurability", -1, low=-1)
    """-1: 2 where regions are named, else 0."""
    regions_durable_in_replace: bool = key("reppEnableDurabilityEnforcementInReplace", default=True)
    regions_validated: bool = key("reppEnableValidation", default=True)
    regions_durability_feature: str = key("reppDisableDurabilityFeatureName", "repp_disable_durability_enforcement")
    regions_disallow_feature: str = key("reppDisallowBookiePlacementInRegionFeatureName", "")
    """Nowhere disallowed where it is empty."""
    weighted_placement: bool = key("diskWeightBasedPlacementEnabled", default=False)
    weight_multiple_max: int = key("bookieMaxMultipleForWeightBasedPlacement", 3)
    weight_cap: str = key("diskWeightCapMode", "median", choices=("median", "min"))
    bookie_info_interval_s: float = key("getBookieInfoIntervalSeconds", 86_400.0, low=0.001)
    bookie_info_retry_s: float = key("getBookieInfoRetryIntervalSeconds", 60.0, low=0.001)

    # Quarantine.
    health_check_enabled: bool = key("bookieHealthCheckEnabled", default=False)
    health_check_interval_s: float = key("bookieHealthCheckIntervalSeconds", 60.0, low=0.001)
    health_errors_max: int = key("bookieErrorThresholdPerInterval", 100, low=1)
    health_counts_connect_errors: bool = key("bookieConnectionErrorQuarantineEnabled", default=False)
    quarantine_s: float = key("bookieQuarantineTimeSeconds", 1800.0)
    quarantine_ratio: float = key("bookieQuarantineRatio", 1.0)


def _value(name: str, one: Field[Any], value: Any, *, scaled: bool) -> Any:
    kind: Any = type(one.default)

    if isinstance(value, str) and kind is bool:
        value = ROUND.get(value.strip().lower(), value)
    if isinstance(value, str) and kind in (int, float):
        with contextlib.suppress(ValueError):
            value = float(value) if kind is float else int(value)
    if kind is float and type(value) is int:
        value = float(value)
    choices = one.metadata["choices"]
    if type(value) is not kind:
        raise ConfigurationError(f"{name}={value!r}: it must be {_expected(one)}")
    if kind in (int, float) and value < one.metadata["low"]:
        raise ConfigurationError(f"{name}={value!r}: it must be {_expected(one)}")
    if scaled and kind is float and value > 0:
        value *= one.metadata["scale"]
    return _chosen(name, one, value) if choices else value


def _chosen(name: str, one: Field[Any], value: str) -> str:
    choices, long = one.metadata["choices"], one.metadata["long"]
    said = value.casefold()
    if long is not None and (java := long.fullmatch(said)):
        said = java[1]
    for choice in choices:
        if choice.casefold() == said:
            return str(choice)
    raise ConfigurationError(f"{name}={value!r}: it must be one of {', '.join(choices)}")


def _expected(one: Field[Any]) -> str:
    kind: Any = type(one.default)
    if kind is bool:
        return "true or false"
    if kind is str:
        return "a text"
    return f"a {'whole ' if kind is int else ''}number, {one.metadata['low']:g} at least"
