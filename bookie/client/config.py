"""The client's settings: for each, Apache BookKeeper's key, the name of our field, its default and its unit.

`ClientConfig.of` accepts Apache BookKeeper's keys as well as the names of the fields, and values of the field's type or
as text. Fields whose names end in `_s` are seconds, whatever the unit of the key is. Settings never change after they
were made, so they may be used from any thread.
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
    """Declare a field of a settings dataclass.

    Args:
        name: Apache BookKeeper's key, or one of the same style where Apache BookKeeper has no such setting.
        default: The default, in the unit of the field. Its type is the type of the field.
        low: The lowest number allowed, in the unit in which the value is given.
        scale: The factor that converts the unit of the key to the unit of the field. It applies to positive floats
            only.
        choices: The texts allowed, matched without regard to case. Any text is allowed if this is empty.
        long: A pattern for the names that Java uses for the choices, matched against lower case. Its first group is
            the choice.

    Returns:
        A dataclass field.
    """
    metadata = {"key": name, "low": low, "scale": scale, "choices": choices, "long": long}
    return field(default=default, metadata=metadata)


class SettingsOf:
    """The base class of frozen dataclasses whose fields are declared with `key`."""

    __slots__ = ()

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """Build the settings from keys and values.

        Args:
            given: Values by key or by field name. Numbers and booleans may be given as text.

        Returns:
            The settings; a field that is not given has its default.

        Raises:
            ConfigurationError: A key is unknown or given twice, or a value has the wrong type or is out of its range.
                The text names the key, the value and what is allowed.
        """
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
    """The settings of `BookKeeper`. Defaults are those of Apache BookKeeper, unless the setting says otherwise.

    "Ours" marks a setting that Apache BookKeeper does not have.
    """

    # Connections.
    use_v2_wire_protocol: bool = key("useV2WireProtocol", default=False)
    frame_bytes_max: int = key("nettyMaxFrameSizeBytes", 5 << 20, low=FRAME_BYTES_MIN)
    channels_per_bookie: int = key("numChannelsPerBookie", 1, low=1)
    direct_connections_max: int = key("maxDirectConnectionsPerBookie", 4)
    """The highest number of connections to a bookie over which threads read and add without the event loop; 0 means
    none. Ours.
    """
    connect_timeout_s: float = key("clientConnectTimeoutMillis", 10.0, scale=MS)
    add_timeout_s: float = key("addEntryTimeoutSec", 5.0)
    read_timeout_s: float = key("readEntryTimeoutSec", 5.0)
    silence_s: float = key("silentConnectionTimeoutSec", 30.0)
    """How long nothing may arrive from a bookie after a request has timed out, until the connection is closed; 0 means
    no limit. For V2 only, where requests that time out take memory until they are answered. Ours.
    """
    bookie_info_timeout_s: float = key("getBookieInfoTimeoutSecs", 5.0)
    add_quorum_timeout_s: float = key("addEntryQuorumTimeoutSec", -1.0, low=-1)
    """How long an add may wait for its ack quorum before the ledger fails with AddQuorumTimeout; at 0 and below, no
    limit.
    """
    call_timeout_s: float = key("callTimeoutSec", 0.0)
    """How long each call of the client for threads may wait, unless it is told otherwise; 0 means no limit. Ours."""
    session_timeout_s: float = key("zkTimeout", 10.0, scale=MS)
    tls_trust_store: str = key("clientTrustStore", "")
    """A PEM file of certificate authorities. Connections are encrypted if this or `tls_enabled` is set."""
    tls_enabled: bool = key("tlsEnabled", default=False)
    tls_certificate: str = key("tlsCertificatePath", "")
    tls_key: str = key("tlsKeyStore", "")
    tls_hostname_verification: bool = key("tlsHostnameVerificationEnabled", default=True)
    """Apache BookKeeper's default is false."""
    auth_provider: str = key("clientAuthProviderFactoryClass", "")
    auth_token_file: str = key("clientAuthTokenFile", "")
    """The file with the token of the provider `token`; without it, `BOOKIE_AUTH_TOKEN` has the token. Ours."""

    # Writing.
    throttle_per_s: int = key("throttle", 0, low=-1)
    """The highest number of requests per second of a handle, counted separately for adds and for reads; 0 means no
    limit (Apache BookKeeper's default is 5000).
    """
    outstanding_max: int = key("maxOutstandingAdds", 10_000, low=1)
    """The highest number of unacknowledged adds of a handle; a writer waits when it is reached. Ours.

    The handle's table of pending adds does not shrink; it takes at most about 400 bytes for each add that was ever
    pending at the same time.
    """
    outstanding_bytes_max: int = key("maxOutstandingAddBytes", 64 << 20, low=1 << 20)
    """The highest number of bytes in the unacknowledged adds of a handle. Ours."""
    waiting_bytes_max: int = key("maxWaitingAddBytes", 64 << 20, low=1 << 20)
    """The highest number of bytes in adds by asyncio's `append_async` that wait for room in a handle, with
    `WAITING_BYTES` more for each; further ones raise TooManyRequests. Ours.
    """
    explicit_lac_interval_s: float = key("explicitLacInterval", 0.0, scale=MS)
    """How often the writer sends the explicit LAC; 0 means never."""
    delay_ensemble_change: bool = key("delayEnsembleChange", default=False)
    ensemble_changes_max: int = key("maxNumEnsembleChanges", 2**31 - 1)
    opportunistic_striping: bool = key("opportunisticStriping", default=False)
    store_creation_time: bool = key("storeSystemTimeAsLedgerCreationTime", default=True)

    backpressure_wait_s: float = key("waitTimeoutOnBackpressureMs", -1.0, low=-1, scale=MS)
    """How long an add waits for room in the window before it fails with TooManyRequests; below 0, without limit."""
    ensemble_change_feature: str = key("disableEnsembleChangeFeatureName", "disable_ensemble_change")
    features: str = key("enabledFeatures", "")
    """The names of the features that are on at the start, separated by commas. Ours."""

    # Reading.
    speculative_read_first_s: float = key("firstSpeculativeReadTimeout", 2.0, low=-1, scale=MS)
    """How long a read waits for an answer before it asks the next replica as well; at 0 and below it only waits.
    The same holds for `speculative_lac_first_s` and reads of the LAC.
    """
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
    """The highest number of bytes that one range of batches reads ahead. Ours."""

    # Recovery and replication.
    recovery_read_batch: int = key("recoveryReadBatchSize", 64, low=1)
    """The highest number of entries that a recovery reads at the same time; it begins with one, and doubles their
    number with each entry that it finds, within `bytes_in_flight_max`. Apache BookKeeper's default is 1, which costs a
    round trip for each entry.
    """
    recovery_batch_reads: bool = key("recoveryBatchReadEnabled", default=True)
    """Whether ledgers are copied with batch reads where bookies support them and `batch_read_enabled` is set. Apache
    BookKeeper's default is false.
    """
    admin_digest_type: str = key("digestType", "CRC32", choices=("CRC32", "MAC", "CRC32C", "DUMMY"))
    admin_password: str = key("passwd", "")
    rereplication_entries: int = key("rereplicationEntryBatchSize", 10, low=-1)
    replication_bytes_per_s: int = key("replicationRateByBytes", -1, low=-1)
    weight_paced_replication: bool = key("weightPacedReplicationEnabled", default=False)
    weight_paced_pause_max_s: float = key("weightPacedReplicationMaxPauseMs", 10.0, scale=MS)

    copies_need_room: bool = key("roomAwareReplicationEnabled", default=True)
    """Whether copies go to bookies that they would fill beyond `copy_usage_max` only if no others are left. Ours."""
    copy_usage_max: float = key("diskUsageWarnThreshold", 0.9)
    """A key of bookies, whose client gets their value."""

    # Placement.
    placement_policy: str = key(
        "ensemblePlacementPolicy", "rack", choices=("default", "rack", "region", "zone"), long=JAVA_POLICY
    )
    """The class names of Apache BookKeeper's policies are accepted, too."""
    resolver: str = key("reppDnsResolverClass", "")
    """The network location resolver as `module:factory`; if it is empty, the topology script is used."""
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
    """The names of the regions, separated by semicolons."""
    regions_durable_min: int = key("reppMinimumRegionsForDurability", -1, low=-1)
    """-1 means 2 where regions are named, and 0 otherwise."""
    regions_durable_in_replace: bool = key("reppEnableDurabilityEnforcementInReplace", default=True)
    regions_validated: bool = key("reppEnableValidation", default=True)
    regions_durability_feature: str = key("reppDisableDurabilityFeatureName", "repp_disable_durability_enforcement")
    regions_disallow_feature: str = key("reppDisallowBookiePlacementInRegionFeatureName", "")
    """If it is empty, placement is allowed in all regions."""
    weighted_placement: bool = key("diskWeightBasedPlacementEnabled", default=False)
    weight_multiple_max: int = key("bookieMaxMultipleForWeightBasedPlacement", 3)
    weight_cap: str = key("diskWeightCapMode", "median", choices=("median", "min"))
    load_weight: float = key("placementLoadWeight", 0.0)
    """How much the load of bookies counts beside their free space, from 0, not at all, to 1. Ours."""
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
    return f"{'an integer' if kind is int else 'a number'} of at least {one.metadata['low']:g}"
