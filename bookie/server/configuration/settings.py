"""Settings that belong to the server package: frozen values with units in their names. `loader` fills them."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from bookie.auth.settings import AuthSettings
from bookie.metadata.bookies.identity import IdentitySettings
from bookie.server.configuration.loop_settings import LoopSettings
from bookie.storage.garbage.settings import GarbageSettings
from bookie.storage.scrub.settings import ScrubSettings
from bookie.storage.settings import MIB, JournalSettings, StorageSettings

__all__ = [
    "AccessSettings",
    "AdminSettings",
    "cores",
    "DiskSettings",
    "HttpSettings",
    "MetadataSettings",
    "NetworkSettings",
    "RecoveryHosting",
    "ServerSettings",
    "Settings",
    "StatisticsSettings",
]


def cores() -> int:
    """CPUs this process may run on."""
    return len(os.sched_getaffinity(0))


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkSettings(LoopSettings):
    """The data port: besides the limits of its I/O loops, what it binds and the Python threads behind it."""

    host: str = "127.0.0.1"
    """What to bind; `identity.bind_host` finds it."""
    port: int = 3181
    """0 lets the system choose; `DataPort.start` returns what it chose."""
    io_threads: int = 0
    """0 means one for each CPU; `loader` puts the number in."""
    policy_threads: int = 2
    """Python threads for authentication and seldom requests."""
    policy_queue_max: int = 1000
    policy_bytes_max: int = 16 * MIB
    """Of the frames of requests that wait for those threads."""
    auth_bytes_max: int = 64 * 1024
    """An AUTH frame of a connection that is not authenticated yet."""
    auth_refresh_s: int = 10
    """Files of the provider are looked at so often; 0: they are read once."""
    access_log: str = ""
    """Path of its newest file; empty: none is kept."""
    access_log_share: float = 0.01
    access_log_file_bytes_max: int = 64 * MIB
    access_log_files_max: int = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsSettings:
    """TLS on the data port. Paths are as in the file; empty means unset."""

    provider_factory: str = ""
    """Empty: no TLS."""
    key_store_type: str = "pem"
    key_store: str = ""
    """The private key (PEM), or key and certificates (PKCS12)."""
    key_store_password_path: str = ""
    certificate_path: str = ""
    """The certificate and those between it and the root (PEM)."""
    trust_store_type: str = "pem"
    trust_store: str = ""
    trust_store_password_path: str = ""
    client_authentication: bool = False
    required: bool = False
    """In clear nothing is served but the request for encryption."""
    clear_login: bool = True
    """What was shown in clear behind START_TLS, or proven in clear before it, counts inside."""
    protocols: str = ""
    cipher_suites: str = ""
    refresh_s: int = 60
    """0: the files are read once."""
    io_threads: int = 1
    handshake_timeout_ms: int = 10_000
    handshakes_max: int = 4096
    handshakes_per_address_max: int = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataSettings:
    """Where cookies, registrations and ledger metadata live."""

    service_uri: str
    session_timeout_ms: int = 10_000
    backoff_start_ms: int = 1_000
    backoff_max_ms: int = 10_000
    retries_max: int = -1
    """-1: without end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskSettings:
    """When a disk counts as full and what follows. Thresholds are fractions of the file system in use."""

    usage_max: float = 0.95
    usage_low: float = 0.95
    """Once all directories were full, writable again below this."""
    usage_warn: float = 0.90
    check_interval_ms: int = 10_000
    any_full_is_read_only: bool = True
    read_only_allowed: bool = True
    """False: a full bookie stops instead of becoming read-only."""
    force_read_only: bool = False
    log_room_bytes: int = 1 << 30
    """A full directory takes new entry logs of a compaction while it has so much left."""
    index_room_bytes: int = 100 * MIB
    """What a full index directory must have left for adds of a recovery."""
    recovery_room_bytes: int = 1 << 30
    """What a full ledger directory must have left for them."""
    keep_status: bool = False
    """Whether the bookie was read-only is kept in `BOOKIE_STATUS` over a restart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """Everything else of the process."""

    allow_ephemeral_ports: bool = False
    admin_host: str = "127.0.0.1"
    admin_port: int = 3182
    log_format: str = "keyvalue"
    log_level: str = "info"
    shutdown_timeout_ms: int = 30_000
    switch_interval_us: int = 500
    memory_limit_bytes: int = 0
    """0: what the machine and the control group allow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminSettings:
    """Connections of the admin port (gRPC)."""

    connections_max: int = 1000
    connections_per_address_max: int = 750
    handshake_timeout_ms: int = 10_000
    """To the first byte, and from there to the end of the handshakes of TLS and HTTP/2."""
    idle_timeout_ms: int = 300_000
    """A connection without a call is closed after this."""
    send_timeout_ms: int = 30_000
    """What lies ready for a peer is taken within this, 64 KiB at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessSettings:
    """Who may do what at the admin ports. Paths; empty: there is no such file."""

    tokens_file: str = ""
    tls_certificate: str = ""
    tls_key: str = ""
    tls_client_ca: str = ""
    tls_subjects: str = ""
    """`role:name`, separated by commas."""
    insecure_allowed: bool = False
    """Whoever reaches the ports may do everything, unless there are tokens or certificates."""
    sessions_max: int = 1024
    sessions_per_peer_max: int = 256
    """Of other processes with the embedded metadata store: in all, and from one address."""

    @property
    def guarded(self) -> bool:
        """Whether callers must show a token or a certificate."""
        return bool(self.tokens_file or self.tls_client_ca)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticsSettings:
    """What is shown of what is counted."""

    enabled: bool = True
    rollover_s: int = 60
    """Quantiles are of the last window of this length."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpSettings:
    """The HTTP port."""

    enabled: bool = False
    host: str = "127.0.0.1"
    port: int = 8080
    """0 lets the system choose."""
    tls: bool = False
    threads: int = 8
    request_timeout_ms: int = 30_000
    connections_max: int = 256
    connections_per_address_max: int = 192
    receive_timeout_ms: int = 10_000
    """To the first byte of a connection, from there to the end of a handshake, and for each request."""
    send_timeout_ms: int = 10_000
    """For an answer to be taken, and a second more for each 64 KiB of it."""
    output_bytes_max: int = 64 * MIB
    """Answers that wait for their peers."""
    self_test: bool = False
    allowed_hosts: str = ""
    """Names of this port besides its own, separated by commas; `*.example` is every name below it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryHosting:
    """Whether auto-recovery runs in this process, and its keys as they are spelt, in upstream's units."""

    enabled: bool = False
    keys: Mapping[str, bool | int | float | str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings of one bookie, each part handed to the room that it belongs to."""

    identity: IdentitySettings
    metadata: MetadataSettings
    network: NetworkSettings
    storage: StorageSettings
    journal: JournalSettings
    disks: DiskSettings
    server: ServerSettings
    auth: AuthSettings = field(default_factory=AuthSettings)
    tls: TlsSettings = field(default_factory=TlsSettings)
    garbage: GarbageSettings = field(default_factory=GarbageSettings)
    scrub: ScrubSettings = field(default_factory=ScrubSettings)
    access: AccessSettings = field(default_factory=AccessSettings)
    admin: AdminSettings = field(default_factory=AdminSettings)
    recovery: RecoveryHosting = field(default_factory=RecoveryHosting)
    statistics: StatisticsSettings = field(default_factory=StatisticsSettings)
    http: HttpSettings = field(default_factory=HttpSettings)
    texts: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)
    """Every key with the text that counts, secrets masked: for people to read."""
