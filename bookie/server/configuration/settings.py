"""Settings that belong to the server package: frozen values with units in their names, filled by `loader`."""

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
    """Return the number of CPUs that this process may use."""
    return len(os.sched_getaffinity(0))


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkSettings(LoopSettings):
    """The data port: the limits of its I/O loops, its address, and the Python threads behind it."""

    host: str = "127.0.0.1"
    """The address to bind, determined by `identity.bind_host`."""
    port: int = 3181
    """0 lets the system choose a port, which `DataPort.start` returns."""
    io_threads: int = 0
    """0 means one for each CPU; `loader` replaces it by that number."""
    policy_threads: int = 2
    """Python threads for authentication and rare requests."""
    policy_queue_max: int = 1000
    policy_bytes_max: int = 16 * MIB
    """Memory for the frames of requests that wait for those threads."""
    auth_bytes_max: int = 64 * 1024
    """The largest AUTH frame of a connection that is not authenticated yet."""
    auth_refresh_s: int = 10
    """How often files of the provider are checked for changes; 0 reads them once."""
    access_log: str = ""
    """The path of its newest file; empty for no access log."""
    access_log_share: float = 0.01
    access_log_file_bytes_max: int = 64 * MIB
    access_log_files_max: int = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsSettings:
    """TLS on the data port. Paths are as in the configuration file; empty means unset."""

    provider_factory: str = ""
    """Empty for no TLS."""
    key_store_type: str = "pem"
    key_store: str = ""
    """The private key (PEM), or key and certificates (PKCS12)."""
    key_store_password_path: str = ""
    certificate_path: str = ""
    """The certificate and intermediate certificates (PEM)."""
    trust_store_type: str = "pem"
    trust_store: str = ""
    trust_store_password_path: str = ""
    client_authentication: bool = False
    required: bool = False
    """Nothing is served in clear but the request for encryption."""
    clear_login: bool = True
    """A proof that was sent in clear after START_TLS, or a challenge answered in clear before it, counts inside TLS."""
    protocols: str = ""
    cipher_suites: str = ""
    refresh_s: int = 60
    """How often the files are checked for changes; 0 reads them once."""
    io_threads: int = 1
    handshake_timeout_ms: int = 10_000
    handshakes_max: int = 4096
    handshakes_per_address_max: int = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataSettings:
    """The metadata store, which holds cookies, registrations and ledger metadata."""

    service_uri: str
    session_timeout_ms: int = 10_000
    startup_timeout_ms: int = 600_000
    """How long a start waits for the store; -1 for no limit."""
    backoff_start_ms: int = 1_000
    backoff_max_ms: int = 10_000
    retries_max: int = -1
    """-1 for no limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskSettings:
    """When a disk counts as full, and the consequences. Thresholds are the used share of the file system."""

    usage_max: float = 0.95
    usage_low: float = 0.95
    """After all directories were full, the bookie becomes writable again below this."""
    usage_warn: float = 0.90
    check_interval_ms: int = 10_000
    any_full_is_read_only: bool = True
    read_only_allowed: bool = True
    """If false, a full bookie stops instead of becoming read-only."""
    force_read_only: bool = False
    log_room_bytes: int = 1 << 30
    """The free space with which a full directory still accepts new entry logs of a compaction."""
    index_room_bytes: int = 100 * MIB
    """The free space that a full index directory must have for recovery adds."""
    recovery_room_bytes: int = 1 << 30
    """The free space that a full ledger directory must have for recovery adds."""
    keep_status: bool = False
    """Keep in `BOOKIE_STATUS` over a restart whether the bookie was read-only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """The other settings of the process."""

    allow_ephemeral_ports: bool = False
    admin_host: str = "127.0.0.1"
    admin_port: int = 3182
    log_format: str = "keyvalue"
    log_level: str = "info"
    shutdown_timeout_ms: int = 30_000
    switch_interval_us: int = 500
    memory_limit_bytes: int = 0
    """0 for what the machine and the control group allow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminSettings:
    """Connections of the admin port (gRPC)."""

    connections_max: int = 1000
    connections_per_address_max: int = 750
    handshake_timeout_ms: int = 10_000
    """The time limit for the first byte, and after that for the handshakes of TLS and HTTP/2."""
    idle_timeout_ms: int = 300_000
    """A connection without calls is closed after this time."""
    send_timeout_ms: int = 30_000
    """The time in which a peer must receive 64 KiB of pending responses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessSettings:
    """Access control of the admin ports. Paths are empty if there is no such file."""

    tokens_file: str = ""
    tls_certificate: str = ""
    tls_key: str = ""
    tls_client_ca: str = ""
    tls_subjects: str = ""
    """`role:name`, separated by commas."""
    insecure_allowed: bool = False
    """Give every client full access, unless tokens or certificates are configured."""
    sessions_max: int = 1024
    sessions_per_peer_max: int = 256
    """Sessions of other processes with the embedded metadata store: in total, and from one address."""

    @property
    def guarded(self) -> bool:
        """Whether callers must present a token or a certificate."""
        return bool(self.tokens_file or self.tls_client_ca)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticsSettings:
    """Settings of the statistics that `/metrics` shows."""

    enabled: bool = True
    rollover_s: int = 60
    """The length of the window for which quantiles are computed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpSettings:
    """The HTTP port."""

    enabled: bool = False
    host: str = "127.0.0.1"
    port: int = 8080
    """0 lets the system choose a port."""
    tls: bool = False
    threads: int = 8
    request_timeout_ms: int = 30_000
    connections_max: int = 256
    connections_per_address_max: int = 192
    receive_timeout_ms: int = 10_000
    """The time limit for the first byte of a connection, then for a TLS handshake, and for each request."""
    send_timeout_ms: int = 10_000
    """The time limit for sending a response, to which a second is added for each 64 KiB."""
    output_bytes_max: int = 64 * MIB
    """Memory for unsent responses."""
    self_test: bool = False
    allowed_hosts: str = ""
    """Names of this port in addition to its own, separated by commas; `*.example` means every name below it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryHosting:
    """Whether auto-recovery runs in this process, and its keys as they are written, in Apache BookKeeper's units."""

    enabled: bool = False
    keys: Mapping[str, bool | int | float | str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings of one bookie. Each part goes to the module that it belongs to."""

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
    """Every key with its effective text, for people; secrets are masked."""
