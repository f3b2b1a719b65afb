"""The loader: turns a properties file and `BK_key` environment variables into frozen settings, or raises one clear
error.

It runs once, in the main thread, before anything else, and reads only the file. What deserves a log line but not a
refusal (unknown keys, keys without a meaning here) is returned as notices, because logging is configured by the
settings.
"""

import difflib
import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from bookie._fast.base.bounds import BOUNDS, entry_bytes_max, group_entry_bytes, half_entry_bytes
from bookie.auth.registry import needs_certificates
from bookie.auth.settings import AuthSettings
from bookie.errors import StartRefused
from bookie.metadata.bookies.identity import IdentitySettings, is_loopback
from bookie.metadata.uri import uri_from_zookeeper_keys
from bookie.server.configuration.client_keys import CLIENT_KEYS, SHARED
from bookie.server.configuration.errors import ConfigError
from bookie.server.configuration.foreign_keys import IGNORED, LATER, REFUSED
from bookie.server.configuration.key import Key, Value
from bookie.server.configuration.keys import KEYS
from bookie.server.configuration.memory import allowed_bytes
from bookie.server.configuration.properties import PropertiesError, interpolate, parse
from bookie.server.configuration.recovery_keys import RECOVERY_KEYS
from bookie.server.configuration.settings import (
    AccessSettings,
    AdminSettings,
    DiskSettings,
    HttpSettings,
    MetadataSettings,
    NetworkSettings,
    RecoveryHosting,
    ServerSettings,
    Settings,
    StatisticsSettings,
    TlsSettings,
    cores,
)
from bookie.storage.backlog import backlog_bytes_least
from bookie.storage.garbage.settings import GarbageSettings
from bookie.storage.scrub.settings import ScrubSettings
from bookie.storage.settings import MIB, READ_THREADS, JournalSettings, StorageSettings

__all__ = ["load", "Loaded", "Notice"]

ENVIRONMENT_PREFIX = "BK_"
PARTS = {
    "identity": IdentitySettings,
    "metadata": MetadataSettings,
    "network": NetworkSettings,
    "storage": StorageSettings,
    "journal": JournalSettings,
    "disks": DiskSettings,
    "server": ServerSettings,
    "auth": AuthSettings,
    "tls": TlsSettings,
    "garbage": GarbageSettings,
    "scrub": ScrubSettings,
    "access": AccessSettings,
    "admin": AdminSettings,
    "recovery": RecoveryHosting,
    "statistics": StatisticsSettings,
    "http": HttpSettings,
}
TLS_FACTORY = "org.apache.bookkeeper.tls.TLSContextFactory"
SECRET = re.compile(r"(password|passwd|secret|token)$", re.IGNORECASE)
MASK = "********"
CURRENT_NAME = {key.old: key.name for key in KEYS.values() if key.old}
WHY_IGNORED = {name: reason for reason, names in IGNORED.items() for name in names.split()}
TYPO_LIKENESS = 0.85
"""From this ratio of `difflib` on, from 0 to 1, an unknown key is taken for a misspelt known one."""
READ_CACHE_SHARE = 4
"""The read cache gets the memory of all budgets divided by this, unless its size is set."""
READ_CACHE_BYTES_MIN = 2 * MIB
"""The size of two segments."""


@dataclass(frozen=True, slots=True)
class Notice:
    """A message for when logging is configured: a level of the logging module and a text."""

    level: int
    text: str


@dataclass(frozen=True, slots=True)
class Loaded:
    """The settings, notices about them, and every key that was set (name -> text, for the log).

    `misspelt` has a line for each unknown key that looks like a known one. A start only logs them.
    """

    settings: Settings
    notices: tuple[Notice, ...]
    given: Mapping[str, str]
    misspelt: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Given:
    """A value as it was written, and where."""

    text: str
    origin: str


def load(path: Path | None, environment: Mapping[str, str]) -> Loaded:
    """Read `path` (None for environment only), apply the environment, and check everything. Raises StartRefused."""
    notices: list[Notice] = []
    misspelt: list[str] = []
    given = _from_file(path, environment, notices) if path else {}
    given |= _from_environment(environment)
    known: dict[str, Given] = {}
    for name, value in given.items():
        if name in KEYS:
            known[name] = value
        elif name in CURRENT_NAME:
            known.setdefault(CURRENT_NAME[name], given.get(CURRENT_NAME[name], value))
        else:
            _judge_foreign(name, value, notices, misspelt)
    values = {name: _parse(key, known.get(name)) for name, key in KEYS.items()}
    settings = _settings(values, known)
    notices += [Notice(logging.WARNING, text) for text in _open_doors(settings)]
    shown = {name: _shown(KEYS[name], value) for name, value in known.items()}
    return Loaded(settings, tuple(notices), shown, tuple(misspelt))


def _from_file(path: Path, environment: Mapping[str, str], notices: list[Notice]) -> dict[str, Given]:
    try:
        properties = parse(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise StartRefused(f"{path}: byte {error.start} is not UTF-8; save the file as UTF-8") from None
    except PropertiesError as error:
        raise StartRefused(f"{path}, {error}; write a backslash as two backslashes") from None
    except OSError as error:
        raise StartRefused(f"{path}: it cannot be read ({error.strerror}); set --conf to a readable file") from None
    given: dict[str, Given] = {}
    for item in properties:
        origin = f"{path.name}, line {item.line}"
        if item.key in given:
            notices.append(Notice(logging.WARNING, f"{item.key} is set again in {origin}; the last value counts"))
        try:
            text = interpolate(item.value, environment)
        except PropertiesError as error:
            raise ConfigError(
                item.key, item.value, str(error), "set the variable, or write the value itself", origin
            ) from None
        given[item.key] = Given(text.strip(), origin)
    return given


def _from_environment(environment: Mapping[str, str]) -> dict[str, Given]:
    prefix = ENVIRONMENT_PREFIX
    return {
        name.removeprefix(prefix): Given(text.strip(), f"environment variable {name}")
        for name, text in environment.items()
        if name.startswith(prefix) and name != prefix
    }


def _judge_foreign(name: str, value: Given, notices: list[Notice], misspelt: list[str]) -> None:
    """Judge a key that fills no setting: refuse it if ignoring it would mislead, otherwise add a notice."""
    if name in REFUSED:
        allowed, reason = REFUSED[name]
        if value.text.lower() != allowed:
            raise ConfigError(name, value.text, reason, _remedy(allowed), value.origin)
    elif name in LATER:
        notices.append(Notice(logging.WARNING, f"{name} ({value.origin}) has no effect: {LATER[name]}"))
    elif name in WHY_IGNORED:
        text = f"{name} ({value.origin}) has no meaning here and is ignored: {WHY_IGNORED[name]}"
        notices.append(Notice(logging.DEBUG, text))
    else:
        text = f"unknown key {name} ({value.origin}) is ignored"
        if near := _most_similar(name):
            misspelt.append(f"{name} ({value.origin}): no such key; do you mean {near}?")
            text = f"{text}; the most similar known key is {near}"
        notices.append(Notice(logging.WARNING, text))


def _most_similar(name: str) -> str | None:
    """Return the known key that an unknown one looks like, or None. Upper and lower case make no difference."""
    known = {one.casefold(): one for one in (*KEYS, *CURRENT_NAME, *REFUSED, *LATER, *WHY_IGNORED)}
    near = difflib.get_close_matches(name.casefold(), known, n=1, cutoff=TYPO_LIKENESS)
    return known[near[0]] if near else None


def _remedy(allowed: str) -> str:
    return f"set it to {allowed} or remove it" if allowed else "remove it"


def _parse(key: Key, given: Given | None) -> Value:
    text = given.text if given else key.default
    try:
        return key.parse(text)
    except ValueError as error:
        reason, remedy = error.args
        raise ConfigError(key.name, text, reason, remedy, given.origin if given else "not set") from None


def _settings(values: Mapping[str, Value], given: Mapping[str, Given]) -> Settings:
    fields: dict[str, dict[str, Value]] = {part: {} for part in PARTS}
    for key in KEYS.values():
        for place in key.field.split():
            part, _, field = place.partition(".")
            fields[part][field] = values[key.name]
    _derive(fields, values)
    texts = {name: _shown(key, given.get(name)) for name, key in KEYS.items()}
    settings = Settings(**{part: kind(**fields[part]) for part, kind in PARTS.items()}, texts=texts)
    _check(settings, given)
    return settings


def _shown(key: Key, given: Given | None) -> str:
    """Return the text as people may see it."""
    text = given.text if given else key.default
    return MASK if text and SECRET.search(key.name) else text


def _derive(fields: dict[str, dict[str, Value]], values: Mapping[str, Value]) -> None:
    """Fill fields that depend on other fields or on the machine."""
    if not fields["metadata"]["service_uri"]:
        fields["metadata"]["service_uri"] = _legacy_uri(values)
    if not fields["network"]["io_threads"]:
        tls = fields["tls"]["io_threads"] if fields["tls"]["provider_factory"] else 0
        fields["network"]["io_threads"] = min(cores(), BOUNDS.io_loops - int(tls))  # type: ignore[arg-type]
    recovery = {name: values[name] for name in (*RECOVERY_KEYS, *CLIENT_KEYS, *SHARED)}
    if key := recovery.pop("clientKeyStore"):
        recovery |= {"tlsKeyStore": key, "tlsCertificatePath": values["tlsCertificatePath"]}
    fields["recovery"] = {"enabled": recovery.pop("autoRecoveryDaemonEnabled"), "keys": recovery}  # type: ignore[dict-item]
    disks, storage, journal = fields["disks"], fields["storage"], fields["journal"]
    if not disks["usage_low"]:
        disks["usage_low"] = disks["usage_max"]
    storage["read_threads"] = storage["read_threads"] or READ_THREADS
    if disks["log_room_bytes"] == -1:
        disks["log_room_bytes"] = storage["log_bytes_max"]
    if disks["recovery_room_bytes"] == -1:
        disks["recovery_room_bytes"] = disks["log_room_bytes"]
    if not storage["index_directories"]:
        storage["index_directories"] = storage["ledger_directories"]
    if not storage["uncached_read_bytes"]:
        storage["uncached_read_bytes"] = max(2 * int(storage["frame_bytes_max"]), 16 * MIB)  # type: ignore[arg-type]
    if not storage["read_cache_bytes"]:
        memory = int(values["memoryLimitMb"]) or allowed_bytes()  # type: ignore[arg-type]
        storage["read_cache_bytes"] = max(memory // READ_CACHE_SHARE // MIB * MIB, READ_CACHE_BYTES_MIN)
    if storage["readahead_bytes"] == -1:
        storage["readahead_bytes"] = int(storage["read_cache_bytes"]) // 2  # type: ignore[arg-type]
    if values["journalMaxMemorySizeMb"]:
        journals = len(journal["directories"])  # type: ignore[arg-type]
        journal["buffer_bytes"] = int(values["journalMaxMemorySizeMb"]) // max(journals, 1)  # type: ignore[arg-type]


def _legacy_uri(values: Mapping[str, Value]) -> str:
    servers = str(values["zkServers"])
    if not servers:
        raise ConfigError(
            "metadataServiceUri", "", "it must be set",
            "set it to zk+hierarchical://host:2181/ledgers, or to lmdb:///directory for a bookie without ZooKeeper",
            "not set",
        )  # fmt: skip
    return uri_from_zookeeper_keys(servers, str(values["zkLedgersRootPath"]), str(values["ledgerManagerType"]))


def _check(settings: Settings, given: Mapping[str, Given]) -> None:
    """Check what no key alone can show. Raises ConfigError."""
    for key, reason, remedy in _contradictions(settings):
        value = given.get(key, Given(KEYS[key].default, "default"))
        raise ConfigError(key, value.text, reason, remedy, value.origin)


def _contradictions(settings: Settings) -> Iterator[tuple[str, str, str]]:
    """Yield (key, reason, remedy) for settings that contradict each other."""
    network, journal, disks = settings.network, settings.journal, settings.disks
    if network.port == 0 and not (settings.server.allow_ephemeral_ports and settings.identity.bookie_id):
        yield (
            "bookiePort",
            "a port that the system chooses cannot be part of a lasting identity",
            "set a port, or allowEphemeralPorts=true together with bookieId",
        )
    yield from _directory_contradictions(settings)
    for lower, upper, fits in (
        ("serverWriteBufferLowWaterMark", "serverWriteBufferHighWaterMark",
         network.output_low_bytes < network.output_high_bytes),
        ("diskUsageLwmThreshold", "diskUsageThreshold", disks.usage_low <= disks.usage_max),
        ("diskUsageWarnThreshold", "diskUsageThreshold", disks.usage_warn <= disks.usage_max),
        ("journalPreAllocSizeMB", "journalMaxSizeMB", journal.prealloc_bytes <= journal.file_bytes_max),
        ("nettyMaxFrameSizeBytes", "dbStorage_uncachedReadMaxSizeMb",
         network.frame_bytes_max < settings.storage.uncached_read_bytes),
        ("maxBatchReadSize", "nettyMaxFrameSizeBytes", network.batch_bytes_max <= network.frame_bytes_max),
    ):  # fmt: skip
        if not fits:
            yield lower, f"it is not below {upper}", f"lower it, or raise {upper}"
    loops = network.io_threads + (settings.tls.io_threads if settings.tls.provider_factory else 0)
    if loops > BOUNDS.io_loops:
        reason = f"with tlsIOThreads there are {loops} I/O loops, but there can be at most {BOUNDS.io_loops}"
        yield "serverNumIOThreads", reason, "lower it, or tlsIOThreads"
    if network.auth_bytes_max > network.early_bytes_max:
        yield (
            "authMessageSizeMax",
            "it is more than an eighth of serverMaxInputMemorySizeMb, which all unauthenticated connections share",
            "lower it, or raise serverMaxInputMemorySizeMb",
        )
    yield from _buffer_contradictions(settings)
    yield from _access_contradictions(settings)
    yield from _compaction_contradictions(settings.garbage)
    if settings.tls.provider_factory not in ("", TLS_FACTORY):
        yield "tlsProviderFactoryClass", "it is not a known factory", f"set it to {TLS_FACTORY}, or remove it"
    if settings.tls.required and not settings.tls.provider_factory:
        yield "tlsRequired", "without TLS nobody would be served", f"set tlsProviderFactoryClass={TLS_FACTORY}"
    asked_for = settings.tls.provider_factory and settings.tls.client_authentication
    if needs_certificates(settings.auth.provider) and not asked_for:
        yield (
            "bookieAuthProviderFactoryClass",
            "it authenticates clients by their TLS certificate, but none is requested",
            f"set tlsProviderFactoryClass={TLS_FACTORY} and tlsClientAuthentication=true",
        )


def _access_contradictions(settings: Settings) -> Iterator[tuple[str, str, str]]:
    """Yield contradictions of access control: incomplete TLS, and open access on addresses other than loopback."""
    access = settings.access
    for key, host, _ in _reachable(settings):
        if not (access.guarded or access.insecure_allowed):
            yield (
                key,
                f"every client that reaches a port at {host} would have full access",
                "set adminTokensFile or adminTlsClientCaPath, or adminInsecureAllowed=true in a closed network",
            )
    if settings.http.enabled and settings.http.tls and not access.tls_certificate:
        yield "httpServerTlsEnable", "there is no certificate", "set adminTlsCertificatePath and adminTlsKeyPath"
    if settings.http.self_test and not settings.http.enabled:
        yield "sanityCheckMetricsEnabled", "no port shows the metric", "set httpServerEnabled=true"
    if settings.recovery.keys.get("tlsKeyStore") and not settings.tls.certificate_path:
        yield "clientKeyStore", "there is no certificate for it", "set tlsCertificatePath, or remove it"
    if bool(access.tls_certificate) != bool(access.tls_key):
        yield "adminTlsCertificatePath", "it and adminTlsKeyPath need each other", "set adminTlsKeyPath too, or neither"
    if access.tls_client_ca and not access.tls_certificate:
        yield "adminTlsClientCaPath", "clients present no certificate without TLS", "set adminTlsCertificatePath too"
    if bool(access.tls_subjects) > bool(access.tls_client_ca):
        yield "adminTlsSubjects", "no certificates are requested of clients", "set adminTlsClientCaPath too"
    if access.tls_client_ca and not (access.tls_subjects or access.tokens_file):
        yield "adminTlsClientCaPath", "no client has any rights", "give roles in adminTlsSubjects, or adminTokensFile"


def _open_doors(settings: Settings) -> Iterator[str]:
    """Yield warnings about admin ports that other machines can reach."""
    for key, host, remedy in _reachable(settings):
        if not settings.access.guarded:
            yield f"{key}={host}, adminInsecureAllowed=true: every client that reaches that port has full access"
        elif remedy:
            yield f"{key}={host}: tokens cross the network in clear; {remedy}"


def _reachable(settings: Settings) -> Iterator[tuple[str, str, str]]:
    """Yield key and address of each admin port that other machines can reach, and how to encrypt it if needed."""
    server, http, certificate = settings.server, settings.http, settings.access.tls_certificate
    if server.admin_port >= 0 and not is_loopback(server.admin_host):
        yield "adminHost", server.admin_host, "" if certificate else "set adminTlsCertificatePath"
    if http.enabled and not is_loopback(http.host):
        yield "httpServerHost", http.host, "" if http.tls else "set httpServerTlsEnable=true"


def _directory_contradictions(settings: Settings) -> Iterator[tuple[str, str, str]]:
    storage = settings.storage
    for key, directories in (
        ("journalDirectories", settings.journal.directories),
        ("ledgerDirectories", storage.ledger_directories),
        ("indexDirectories", storage.index_directories),
    ):
        if len(set(directories)) != len(directories):
            yield key, "it has a directory twice", "list each directory once"
        if len(directories) > BOUNDS.directories:
            yield key, f"it has {len(directories)} directories", f"list at most {BOUNDS.directories}"
    indexes, ledgers = len(storage.index_directories), len(storage.ledger_directories)
    if indexes != ledgers:
        yield (
            "indexDirectories",
            f"it has {indexes} directories, but ledgerDirectories has {ledgers}",
            "list as many, in the same order",
        )


def _buffer_contradictions(settings: Settings) -> Iterator[tuple[str, str, str]]:
    """Yield buffers, caches and journals that are too small for what the wire protocol admits: docs/limits.md."""
    network, journal, frame = settings.network, settings.journal, settings.network.frame_bytes_max
    journals, ledgers = len(journal.directories), len(settings.storage.ledger_directories)
    cache = settings.storage.write_cache_bytes // ledgers
    entry = entry_bytes_max(frame)
    for key, each, takes, count, what in (
        ("journalMaxMemorySizeMb", journal.buffer_bytes, group_entry_bytes(journal.buffer_bytes,
         journal.alignment_bytes), journals, "journal"),
        ("dbStorage_writeCacheMaxSizeMb", cache, half_entry_bytes(cache), ledgers, "ledger directory"),
    ):  # fmt: skip
        if takes < entry:
            two_frames = 2 * (frame + 4 * journal.alignment_bytes)
            least = -(-two_frames * count // MIB)
            yield key, f"each {what} gets {each} bytes; two frames need {two_frames}", f"raise it to {least} or more"
    if settings.storage.read_cache_bytes < READ_CACHE_BYTES_MIN:
        yield "dbStorage_readAheadCacheMaxSizeMb", "two segments of 1 MiB are the least", "raise it to 2 or more, or 0"
    if journal.buffer_bytes > 2 * BOUNDS.group_bytes:
        most = 2 * BOUNDS.group_bytes
        given = f"each journal gets {journal.buffer_bytes} bytes, but its two groups can use only {most}"
        yield "journalMaxMemorySizeMb", given, f"lower it to {most * journals // MIB}"
    least = backlog_bytes_least(settings.storage, journal)
    if 0 < journal.backlog_bytes_max < least:
        reason = f"checkpoints of write caches of {settings.storage.write_cache_bytes} bytes need {least} bytes anyway"
        yield "journalMaxBacklogMB", reason, f"raise it to {-(-least // MIB)}, or 0"
    for key, size in (
        ("serverMaxInputMemorySizeMb", network.input_bytes_max),
        ("serverMaxOutputMemorySizeMb", network.output_bytes_max),
    ):
        if size < 2 * frame:
            reason = f"one frame in growing buffers may need {2 * frame} bytes"
            yield key, reason, f"raise it to {-(-2 * frame // MIB)} or more, or lower nettyMaxFrameSizeBytes"


def _compaction_contradictions(garbage: GarbageSettings) -> Iterator[tuple[str, str, str]]:
    """Yield contradictory compaction settings: compactions run in cycles, and a major one does more, and less often."""
    for kind, enabled, interval_s in (
        ("minor", garbage.minor_enabled, garbage.minor_interval_s),
        ("major", garbage.major_enabled, garbage.major_interval_s),
    ):
        if enabled and interval_s * 1000 < garbage.wait_ms:
            key = f"{kind}CompactionInterval"
            yield key, f"it is shorter than gcWaitTime={garbage.wait_ms} ms", "raise it, or lower gcWaitTime"
    if garbage.minor_enabled and garbage.major_enabled:
        for what, fits in (
            ("Threshold", garbage.minor_threshold < garbage.major_threshold),
            ("Interval", garbage.minor_interval_s < garbage.major_interval_s),
        ):
            if not fits:
                major = f"majorCompaction{what}"
                yield f"minorCompaction{what}", f"it is not below {major}", f"lower it, or raise {major}"
