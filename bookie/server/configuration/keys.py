"""Every key of the configuration file: type, default, range, unit, meaning, and the settings field that it fills.

Pure data. Names are Apache BookKeeper's if the meaning is the same; if our default differs, `differs` says what theirs
is and why. `loader` reads settings by this table, `reference` prints it.
"""

from bookie._fast.base.bounds import BOUNDS
from bookie.server.configuration.admin_keys import ADMIN
from bookie.server.configuration.client_keys import CLIENT
from bookie.server.configuration.http_keys import HTTP
from bookie.server.configuration.key import Group, Key, Value
from bookie.server.configuration.loop_settings import loop_keys
from bookie.server.configuration.recovery_keys import RECOVERY
from bookie.server.configuration.scrub_keys import SCRUB
from bookie.storage.settings import MIB

__all__ = ["Group", "GROUPS", "Key", "KEYS", "Value"]

GIB = 1 << 30
LONGEST_MS = 2**31 - 1
MOST_BYTES = 2**63 - 1
"""What Apache BookKeeper's configuration takes for "never"."""

GROUPS = (
    Group(
        "Identity and network",
        (
            Key("bookiePort", "network.port identity.port", int, "3181", "Port for clients. 0 lets the system choose a"
                " port; this needs `allowEphemeralPorts` and a `bookieId`.", high=65535),
            Key("bookieId", "identity.bookie_id", str, "", "Fixed id of the bookie, instead of host and port."),
            Key("advertisedAddress", "identity.advertised_address", str, "", "Address that is announced to clients: an"
                " IP address or a host name, without a port. A start and `--check` warn if this machine finds no"
                " address for it, or one that other machines cannot reach. Without `listeningInterface`, the bookie"
                " then binds all interfaces. If neither is set, it serves only 127.0.0.1, and only if `allowLoopback`"
                " permits it.", differs="unset, a bookie binds every interface"),
            Key("listeningInterface", "identity.listening_interface", str, "", "Network interface whose address is"
                " bound, and announced to clients if `advertisedAddress` is unset."),
            Key("useHostNameAsBookieID", "identity.use_host_name", bool, "false", "Announce the host's name to"
                " clients. Without `listeningInterface`, the bookie then binds all interfaces."),
            Key("useShortHostName", "identity.use_short_host_name", bool, "false", "Truncate the host name at its"
                " first dot."),
            Key("allowLoopback", "identity.allow_loopback", bool, "false", "Permit an id on 127.x, which no other"
                " machine can reach."),
            Key("allowEphemeralPorts", "server.allow_ephemeral_ports", bool, "false", "Permit `bookiePort=0`."),
            Key("serverNumIOThreads", "network.io_threads", int, "0", "Number of I/O loops; 0 means one for each CPU."
                " Together with `tlsIOThreads` there can be 64.", high=BOUNDS.io_loops, differs="2 x CPUs; our loops"
                " never block, so a second one on a CPU would only add context switches"),
            *loop_keys(),
            Key("policyThreads", "network.policy_threads", int, "2", "Number of threads for bookie info and lists of"
                " entries, and the same number for authentication. Adds and reads never wait for them.", low=1,
                high=64),
            Key("maxPendingPolicyRequests", "network.policy_queue_max", int, "1000", "Maximum number of requests that"
                " wait for these threads, a sixteenth of them from one connection, and the same number of logins."
                " Further requests are refused with `ETOOMANYREQUESTS`; the connection of a further login is closed.",
                low=1, high=1_000_000),
            Key("policyQueueSizeMb", "network.policy_bytes_max", int, "16", "Memory for these requests, half of it for"
                " logins.", low=1, high=1 << 16, unit="MiB", scale=MIB),
        ),
    ),
    Group(
        "Authentication",
        (
            Key("bookieAuthProviderFactoryClass", "auth.provider", str, "", "Authentication provider: `token`, `sasl`,"
                " `certificate`, Apache BookKeeper's class name for one of them, or an installed provider. If it is"
                " unset, everybody is let in. docs/security.md has examples."),
            Key("authTokenFile", "auth.token_file", str, "", "For `token`: the file with the tokens. Each line is"
                " `token`, `role:token` or `role:name:token`, with the role `read`, `write` or `admin`. If it is"
                " unset, the token is the environment variable `BOOKIE_AUTH_TOKEN`."),
            Key("saslJaasConfigFile", "auth.jaas_file", str, "", "For `sasl`: the JAAS file with the users, which Java"
                " finds by `java.security.auth.login.config`."),
            Key("saslJaasBookieSectionName", "auth.jaas_section", str, "Bookie", "For `sasl`: the section of this file"
                " for bookies."),
            Key("saslJaasClientAllowedIds", "auth.allowed_ids", str, ".*bookkeeper.*", "For `sasl`: a regular"
                " expression that must match the whole user name."),
            Key("authorizedRoles", "auth.authorized_roles", str, "", "For `certificate`: roles that are let in,"
                " separated by commas. A certificate has its role in its subject: `OU=0:role`."),
            Key("authorizedCertificateNames", "auth.authorized_names", str, "", "For `certificate`: subject"
                " alternative names (DNS, URI, e-mail) that are let in, separated by commas."),
            Key("authProviderFile", "auth.provider_file", str, "", "For an installed provider: a file for its own"
                " use."),
            Key("authFilesRefreshDurationSeconds", "network.auth_refresh_s", int, "10", "Interval of checks whether"
                " `authTokenFile` or `saslJaasConfigFile` has changed. Connections of tokens and users that were"
                " removed, or whose role or password has changed, are closed. 0 means never.", high=86_400, unit="s"),
            Key("authMessageSizeMax", "network.auth_bytes_max", int, "65536", "Largest frame of a client that is not"
                " authenticated; a larger length closes the connection.", low=1024, high=16 * MIB, unit="bytes"),
        ),
    ),
    Group(
        "TLS",
        (
            Key("tlsProviderFactoryClass", "tls.provider_factory", str, "",
                "`org.apache.bookkeeper.tls.TLSContextFactory` offers TLS to clients that ask for it (START_TLS). If"
                " it is unset, there is no TLS. docs/security.md has an example."),
            Key("tlsProvider", "", str, "OpenSSL", "Accepted for compatibility: TLS is done by OpenSSL in either"
                " case.", choices=("openssl", "jdk")),
            Key("tlsKeyStoreType", "tls.key_store_type", str, "PEM", "Format of `tlsKeyStore`. `JKS` is refused, with"
                " a remedy.", choices=("pem", "pkcs12", "jks"), differs="JKS"),
            Key("tlsKeyStore", "tls.key_store", str, "", "File with the private key (PEM), or with key and"
                " certificates (PKCS12)."),
            Key("tlsKeyStorePasswordPath", "tls.key_store_password_path", str, "", "File with the password of"
                " `tlsKeyStore`; unset if it has none."),
            Key("tlsCertificatePath", "tls.certificate_path", str, "", "PEM file with this bookie's certificate,"
                " followed by those between it and the root."),
            Key("tlsTrustStoreType", "tls.trust_store_type", str, "PEM", "Format of `tlsTrustStore`. `JKS` is refused,"
                " with a remedy.", choices=("pem", "pkcs12", "jks"), differs="JKS"),
            Key("tlsTrustStore", "tls.trust_store", str, "", "File with the certificates of the authorities that issue"
                " certificates to clients."),
            Key("tlsTrustStorePasswordPath", "tls.trust_store_password_path", str, "", "File with the password of"
                " `tlsTrustStore`; unset if it has none."),
            Key("tlsClientAuthentication", "tls.client_authentication", bool, "false", "A client that asks for TLS"
                " must present a certificate. This does not affect connections in clear: require authentication for"
                " them."),
            Key("tlsRequired", "tls.required", bool, "false", "Serve nothing in clear but the request for TLS, on any"
                " interface: no logins and no other requests."),
            Key("tlsLoginInClearAllowed", "tls.clear_login", bool, "true", "A login in clear that answered a challenge"
                " counts inside TLS, and a login message may follow the request for TLS in clear, as Java clients with"
                " users send it. This has no effect with `tlsRequired`."),
            Key("tlsEnabledProtocols", "tls.protocols", str, "", "`TLSv1.2`, `TLSv1.3`, or both, separated by commas;"
                " unset: both."),
            Key("tlsEnabledCipherSuites", "tls.cipher_suites", str, "", "Cipher suites, separated by commas, with the"
                " names of Java or of OpenSSL; unset: suites that are safe and fast."),
            Key("tlsCertFilesRefreshDurationSeconds", "tls.refresh_s", int, "60", "Interval of checks whether the"
                " files have changed; new connections then use the new files. 0 means never.", high=86_400, unit="s",
                differs="0; a renewed certificate should not need a restart"),
            Key("tlsIOThreads", "tls.io_threads", int, "1", "Number of I/O loops for encrypted connections, which do"
                " not delay connections in clear.", low=1, high=16),
            Key("tlsHandshakeTimeoutMs", "tls.handshake_timeout_ms", int, "10000", "A connection whose handshake takes"
                " longer is closed.", low=100, high=3_600_000, unit="ms"),
            Key("tlsHandshakesMax", "tls.handshakes_max", int, "4096", "Maximum number of concurrent handshakes; the"
                " connections of further ones are closed.", low=1, high=1_000_000),
            Key("tlsHandshakesMaxPerAddress", "tls.handshakes_per_address_max", int, "256", "The same for one address,"
                " so that clients which ask for TLS and then send nothing keep nobody else out.", low=1,
                high=1_000_000),
        ),
    ),
    Group(
        "Metadata",
        (
            Key("metadataServiceUri", "metadata.service_uri", str, "", "Metadata store:"
                " `zk+hierarchical://host:2181/ledgers` (several hosts separated by `;`), `etcd://host:2379/ledgers`"
                " (several hosts separated by `,`), `lmdb:///directory` for the store embedded in this bookie, or"
                " `grpc://host:3182` for the store embedded in another bookie.",
                differs="none, derived from `zkServers` as here"),
            Key("zkServers", "", str, "", "Older form: ZooKeeper servers `host:port`, separated by commas; used if"
                " `metadataServiceUri` is unset."),
            Key("zkLedgersRootPath", "", str, "/ledgers", "Older form: root path of the cluster, with `zkServers`."),
            Key("ledgerManagerType", "", str, "null", "Older form: ledger layout, with `zkServers`; `null` means the"
                " layout that the cluster has.", choices=("flat", "hierarchical", "longhierarchical", "null")),
            Key("zkTimeout", "metadata.session_timeout_ms", int, "10000", "Timeout of the session with the metadata"
                " store.", low=100, high=3_600_000, unit="ms"),
            Key("startupMetadataTimeoutMs", "metadata.startup_timeout_ms", int, "600000", "How long a start waits for"
                " a metadata store that is out of reach, with a log line a minute; then the bookie exits with code 3."
                " 0: one attempt; -1: no limit. An attempt is not cut short, and may take `zkTimeout`.", low=-1,
                unit="ms"),
            Key("zkRetryBackoffStartMs", "metadata.backoff_start_ms", int, "1000", "First delay before the bookie"
                " registers again.", low=1, unit="ms", differs="zkTimeout; a short interruption should not cost ten"
                " seconds"),
            Key("zkRetryBackoffMaxMs", "metadata.backoff_max_ms", int, "10000", "Longest delay between two attempts.",
                low=1, unit="ms"),
            Key("zkRetryBackoffMaxRetries", "metadata.retries_max", int, "-1", "Number of attempts after the session"
                " is lost, before the bookie ends with exit code 3; -1 means no limit.", low=-1),
        ),
    ),
    Group(
        "Directories and disks",
        (
            Key("journalDirectories", "journal.directories", tuple, "", "Directories for journals, one journal in"
                " each. A separate disk is best. The order matters.", required=True, old="journalDirectory",
                differs="a directory under /tmp, where nothing durable belongs"),
            Key("ledgerDirectories", "storage.ledger_directories", tuple, "", "Directories for entry logs. The order"
                " matters: a ledger belongs to the directory with the number (ledger id modulo count).", required=True,
                differs="a directory under /tmp, where nothing durable belongs"),
            Key("indexDirectories", "storage.index_directories", tuple, "", "Directories for indexes, as many as"
                " ledger directories; unset: the ledger directories."),
            Key("diskUsageThreshold", "disks.usage_max", float, "0.95", "A directory whose disk is fuller than this"
                " share is full.", low=0.01, high=0.999),
            Key("diskUsageWarnThreshold", "disks.usage_warn", float, "0.90", "Above this share, the log contains"
                " warnings and no major compaction runs.", low=0.01, high=0.999),
            Key("diskUsageLwmThreshold", "disks.usage_low", float, "0", "After all ledger directories were full, the"
                " usage of their disks together must fall below this share; 0 means `diskUsageThreshold`.",
                high=0.999),
            Key("diskCheckInterval", "disks.check_interval_ms", int, "10000", "Interval between two checks.", low=10,
                high=LONGEST_MS, unit="ms"),
            Key("readOnlyModeEnabled", "disks.read_only_allowed", bool, "true", "A bookie with full disks becomes"
                " read-only; false: it ends with exit code 5."),
            Key("readOnlyModeOnAnyDiskFullEnabled", "disks.any_full_is_read_only", bool, "true", "One full ledger"
                " directory makes the bookie read-only; false: only when all are full.", differs="false up to 4.17;"
                " ledgers are bound to directories, so a full one refuses its share of the adds"),
            Key("minUsableSizeForEntryLogCreation", "disks.log_room_bytes", int, "-1", "Default of"
                " `minUsableSizeForHighPriorityWrites`; -1 means `logSizeLimit`. A full directory does not compact"
                " entry logs, however much space it has left.", low=-1, high=MOST_BYTES, unit="bytes"),
            Key("minUsableSizeForIndexFileCreation", "disks.index_room_bytes", int, str(100 * MIB), "Free space that"
                " an index directory must have so that a full bookie accepts recovery adds.", high=MOST_BYTES,
                unit="bytes"),
            Key("minUsableSizeForHighPriorityWrites", "disks.recovery_room_bytes", int, "-1", "A read-only bookie"
                " accepts recovery adds while every ledger directory has at least this much free space; -1 means"
                " `minUsableSizeForEntryLogCreation`.", low=-1, high=MOST_BYTES, unit="bytes"),
            Key("persistBookieStatusEnabled", "disks.keep_status", bool, "false", "Remember across restarts whether"
                " the bookie was read-only: it stays so if an operator made it read-only; if a disk was full,"
                " `diskUsageLwmThreshold` decides."),
            Key("forceReadOnlyBookie", "disks.force_read_only", bool, "false", "Start in read-only mode and stay in"
                " it."),
        ),
    ),
    Group(
        "Journal",
        (
            Key("journalMaxSizeMB", "journal.file_bytes_max", int, "128", "A journal file is closed when it reaches"
                " this size.", low=16, high=BOUNDS.journal_file_bytes // MIB, unit="MiB", scale=MIB,
                differs="2048; journal files are reused after the backups, and smaller ones sooner"),
            Key("journalMaxBackups", "journal.backups_max", int, "5", "Number of journal files kept after a checkpoint"
                " no longer needs them.", high=BOUNDS.journal_backups),
            Key("journalMaxBacklogMB", "journal.backlog_bytes_max", int, "0", "A journal that holds more than this for"
                " ledger directories that were not flushed accepts no more adds. At half of it at the latest, what"
                " these directories have in memory is journaled again, so that older files can be deleted. 0 means a"
                " quarter of the disk, shared by all journals.", high=1 << 24, unit="MiB", scale=MIB),
            Key("journalPreAllocSizeMB", "journal.prealloc_bytes", int, "64", "A journal file grows by this size, with"
                " zeros written in advance.", low=1, high=4096, unit="MiB", scale=MIB, differs="16; each growth costs"
                " a metadata commit of the file system, so it should be rare"),
            Key("journalMaxMemorySizeMb", "", int, "0", "Memory for entries that wait for the journal, over all"
                " journals; when it is full, sockets are no longer read. 0 means 32 for each journal.", high=1 << 16,
                unit="MiB", scale=MIB, differs="5 % of Java's direct memory"),
            Key("journalAlignmentSize", "journal.alignment_bytes", int, "4096", "Journal groups are padded to a"
                " multiple of this size.", low=512, high=65536, unit="bytes", multiple=512, differs="512; a write that"
                " is smaller than a block of the file system must read the block first"),
            Key("journalSyncData", "journal.sync_data", bool, "true", "Acknowledge an add after its journal group is"
                " on disk; false: after it is written to the page cache. A power failure can then lose acknowledged"
                " entries."),
            Key("journalWriteData", "journal.write_data", bool, "true", "Write entries to the journal; false: a crash"
                " loses acknowledged entries, and the next start is refused."),
            Key("dataIntegrityChecking", "storage.check_integrity", bool, "false", "Start after such a crash"
                " nevertheless: ledgers that may lack entries are fenced and in limbo, where nothing is denied."),
            Key("journalMaxGroupWaitMSec", "journal.group_wait_ms", float, "2", "Longest time that an add waits for"
                " its group to fill, if `journalFlushWhenQueueEmpty` is false.", high=1000, unit="ms"),
            Key("journalBufferedWritesThreshold", "journal.group_bytes", int, "524288", "A group of this size is"
                " written without further waiting.", high=256 * MIB, unit="bytes"),
            Key("journalBufferedEntriesThreshold", "journal.group_entries", int, "0", "A group with this many entries"
                " is written without further waiting; 0 means no limit."),
            Key("journalFlushWhenQueueEmpty", "journal.flush_when_empty", bool, "true", "Write a group as soon as the"
                " previous one is on disk.", differs="false; here a group is what arrived during the last sync, so a"
                " single writer need not wait for the timer"),
            Key("journalReuseFiles", "journal.reuse_files", bool, "true", "Write new journal files over old ones that"
                " are no longer needed. As many are kept for that as a checkpoint frees, at most 8.", differs="false; a"
                " sync of existing blocks is faster than one of new blocks, and the checksum of each group"
                " distinguishes old bytes from new ones"),
            Key("skipReplayJournalInvalidRecord", "storage.skip_damaged_journal", bool, "false", "Start even if a"
                " journal is damaged in its middle, and lose what follows the damage in that file."),
            Key("takeOverFencingAll", "storage.fence_all", bool, "false", "Take over a Java bookie's disks even if its"
                " index of ledgers cannot be read: every ledger is then fenced, and explicit LACs are lost."),
        ),
    ),
    Group(
        "Ledger storage",
        (
            Key("dbStorage_writeCacheMaxSizeMb", "storage.write_cache_bytes", int, "512", "Memory for entries that"
                " wait for the entry log: both halves, over all directories.", low=2, high=1 << 20, unit="MiB",
                scale=MIB, differs="25 % of Java's direct memory"),
            Key("dbStorage_readAheadCacheMaxSizeMb", "storage.read_cache_bytes", int, "0", "Memory for entries that"
                " were read from entry logs, divided equally among the ledger directories. 0 means a quarter of the"
                " memory that all budgets may have: `memoryLimitMb`, or what the machine and the control group allow.",
                high=1 << 20, unit="MiB", scale=MIB, differs="25 % of Java's direct memory"),
            Key("dbStorage_readCacheSegmentSizeMb", "storage.read_segment_bytes", int, "64", "The read cache is"
                " emptied in segments of this size.", low=1, high=1024, unit="MiB", scale=MIB),
            Key("dbStorage_uncachedReadMaxSizeMb", "storage.uncached_read_bytes", int, "0", "Memory for entries that"
                " are read while the read cache waits for slow readers. Beyond it, reads wait for up to a second and"
                " are then refused with `ETOOMANYREQUESTS`. 0 means twice `nettyMaxFrameSizeBytes`, but at least 16"
                " MiB.", high=1 << 20, unit="MiB", scale=MIB),
            Key("dbStorage_readAheadCacheBatchSize", "storage.readahead_entries", int, "1000", "Maximum number of"
                " entries to read ahead for sequential readers.", high=1_000_000, differs="100; reading further costs"
                " little once the disk has found the position"),
            Key("dbStorage_readAheadCacheBatchBytesSize", "storage.readahead_bytes", int, str(4 * MIB),
                "Maximum number of bytes to read ahead for sequential readers; -1 means half the read cache.", low=-1,
                high=GIB, unit="bytes", differs="-1; many large entries for one reader would empty the cache"),
            Key("dbStorage_readAheadPolicy", "storage.readahead_policy", str, "forward", "Which reads from disk bring"
                " more entries than were requested: those of readers that go `forward` through a ledger, by steps of"
                " any length that readahead covers; `always` each one, as in Apache BookKeeper; or none (`off`).",
                choices=("forward", "always", "off")),
            Key("dbStorage_adaptiveReadAhead", "storage.adaptive_readahead", bool, "false", "Read ahead less while"
                " much of the readahead leaves the read cache unused, and more again later, up to the two keys"
                " above."),
            Key("dbStorage_rereadTableMb", "storage.reread_table_bytes", int, "4", "Memory for detecting entries that"
                " are read from disk again; 1 MiB remembers about 4 million entries. 0 counts none.", high=1 << 14,
                unit="MiB", scale=MIB),
            Key("dbStorage_maxThrottleTimeMs", "storage.throttle_ms_max", int, "10000", "Longest time that an add"
                " waits for room in the write cache; then it is refused with `ETOOMANYREQUESTS`. When none has found"
                " room in a ledger directory for that long, further ones do not wait.", high=3_600_000, unit="ms"),
            Key("dbStorage_indexMapSizeGb", "storage.index_map_bytes", int, "1024", "Address space reserved for each"
                " index, which takes neither memory nor disk space. An index that fills it gets twice as much.", low=1,
                high=1 << 14, unit="GiB", scale=GIB),
            Key("dbStorage_maxLedgers", "storage.ledgers_max", int, "500000", "Maximum number of ledgers of the"
                " bookie, over all directories, with about 400 bytes of memory each. Further new ledgers are refused"
                " with `EREADONLY`, while existing ones are not affected. Recoveries and fences may add an eighth"
                " more. The same number of fences of deleted ledgers is kept; at that limit, fenced ledgers are not"
                " deleted until older fences have expired.", low=1, high=1_000_000_000),
            Key("flushSizeMb", "storage.flush_bytes", int, "64", "Entries in the write cache that trigger a checkpoint"
                " early, or a quarter of the write cache if that is less.", low=1, high=1 << 20, unit="MiB",
                scale=MIB),
            Key("dbStorage_keepFlushed", "storage.keep_flushed", bool, "true", "Keep what was flushed readable in"
                " memory until the write cache needs that, so that readers close behind the writers do not wait for"
                " the disk. It takes at most half of the write cache, and checkpoints are triggered when a sixteenth"
                " less than `flushSizeMb` waits."),
            Key("dbStorage_indexSliceLedgers", "storage.index_slice_ledgers", int, "1000", "A checkpoint for lack of"
                " room that flushes at least this many ledgers puts only a slice of them into the location index, a"
                " sixteenth or more, with all that waits of these, so each page of the index is written once for"
                " several flushes. Where the entries of the others lie is kept in memory, at most an eighth of the"
                " write cache, and the journal keeps them, up to twice the size of the write cache; a start after a"
                " crash replays that. 0: each checkpoint puts all.", low=0, high=1_000_000_000),
            Key("dbStorage_indexTransactionPages", "storage.index_leaves", int, "8192", "Leaf pages of a location index"
                " that one transaction changes, about; further changes are put by further transactions. Each takes"
                " 4 KiB of memory, and half as much for the pages above it.", low=1, high=1 << 17),
            Key("flushInterval", "storage.flush_interval_ms", int, "10000", "Interval between two checkpoints.", low=1,
                high=86_400_000, unit="ms"),
            Key("logSizeLimit", "storage.log_bytes_max", int, str(GIB), "An entry log is closed when it reaches this"
                " size.", low=MIB, high=BOUNDS.log_limit_bytes, unit="bytes"),
            Key("entryLogPerLedgerEnabled", "storage.log_per_ledger", bool, "false", "Give each ledger its own entry"
                " logs: its entries are then contiguous, and its files are deleted with it. docs/operations.md"
                " describes when this is useful."),
            Key("entrylogMapAccessExpiryTimeInSeconds", "storage.log_idle_ms_max", int, "300",
                "With `entryLogPerLedgerEnabled`: a log without new entries for this time is closed.", low=1,
                high=86_400, unit="s", scale=1000),
            Key("maximumNumberOfActiveEntryLogs", "storage.ledger_logs_max", int, "500",
                "With `entryLogPerLedgerEnabled`: maximum number of logs that are written at a time, over all"
                " directories; for a further one, the least recently used log is closed. Each takes a descriptor and 6"
                " KiB.", low=1, high=1_000_000),
            Key("openEntryLogLimit", "storage.open_logs_max", int, "256", "Maximum number of entry logs that are held"
                " open for reads.", low=4, high=1_000_000),
            Key("numReadWorkerThreads", "storage.read_threads", int, "32", "Number of threads that read from disk,"
                " divided equally among the ledger directories; each has one at least, so a disk that hangs delays no"
                " reads from others. Reads from memory need none. 0 means the default; Java's bookie reads in its I/O"
                " threads then.",
                low=0, high=BOUNDS.read_threads),
            Key("maxPendingReadRequests", "storage.read_queue_max", int, "10000", "Maximum number of reads that wait"
                " for the disk; more are refused with `ETOOMANYREQUESTS`, unless less than an equal part of them waits"
                " for the same ledger directory.", low=1, high=10_000_000),
        ),
    ),
    Group(
        "Garbage collection and compaction",
        (
            Key("gcWaitTime", "garbage.wait_ms", int, "600000", "Interval between two garbage collections, and before"
                " the first one.", low=10, unit="ms"),
            Key("gcMetadataOpRateLimit", "garbage.metadata_reads_per_s", int, "1000", "Maximum number of reads per"
                " second that verify that a ledger was deleted. No ledger is deleted without this check.", low=1),
            Key("gcDeleteShareMax", "garbage.delete_share_max", float, "0.5", "If more than this share of the bookie's"
                " ledgers would be deleted at once, none is deleted, and an alarm is raised until an operator forces a"
                " cycle; 1 means any share.", high=1),
            Key("gcOnEmptyLedgerList", "garbage.on_empty_list", bool, "true", "Delete all ledgers of the bookie if the"
                " metadata store, with the layout and the instance id of this cluster, lists no ledger at all, and"
                " still does so after `gcEmptyLedgerListWaitTime`. `gcDeleteShareMax` does not apply then; false: keep"
                " them."),
            Key("gcEmptyLedgerListWaitTime", "garbage.empty_list_wait_ms", int, "3600000", "How long the metadata"
                " store must list no ledger at all, without any error between, before `gcOnEmptyLedgerList` applies."
                " A restart begins anew.", low=1, unit="ms"),
            Key("gcFencedDeletedLedgerKeepTime", "garbage.fence_kept_ms", int, "604800000", "How long adds from the"
                " writer of a deleted ledger that was fenced are refused. Apache BookKeeper's time is fixed.", low=0,
                unit="ms"),
            Key("gcOverreplicatedLedgerWaitTime", "garbage.over_replicated_interval_ms", int, "86400000",
                "Interval of searches for closed ledgers that have moved to other bookies; those that are found twice"
                " in a row are deleted. 0 or less means never.", low=-1, unit="ms"),
            Key("minorCompactionThreshold", "garbage.minor_threshold", float, "0.2", "Minor compaction processes logs"
                " whose live share is below this; 0 or less: none.", low=-1, high=1),
            Key("minorCompactionInterval", "garbage.minor_interval_s", int, "3600", "Interval between two minor"
                " compactions; 0 or less: only forced ones.", low=-1, unit="s"),
            Key("minorCompactionMaxTimeMillis", "garbage.minor_ms_max", int, "-1", "After this time, a minor"
                " compaction begins no further log; 0 or less: no limit.", low=-1, unit="ms"),
            Key("majorCompactionThreshold", "garbage.major_threshold", float, "0.8", "Major compaction processes logs"
                " whose live share is below this; 0 or less: none.", low=-1, high=1),
            Key("majorCompactionInterval", "garbage.major_interval_s", int, "86400", "Interval between two major"
                " compactions; 0 or less: only forced ones.", low=-1, unit="s"),
            Key("majorCompactionMaxTimeMillis", "garbage.major_ms_max", int, "-1", "After this time, a major"
                " compaction begins no further log; 0 or less: no limit.", low=-1, unit="ms"),
            Key("isThrottleByBytes", "garbage.throttle_by_bytes", bool, "true", "Limit the rate of compaction by"
                " bytes; false: by entries.", differs="false; the number of entries says little about the work of a"
                " disk"),
            Key("compactionRateByBytes", "garbage.rate_bytes_per_s", int, str(32 * MIB), "Maximum number of bytes per"
                " second that a compaction copies in each ledger directory; 0: as fast as the disk.", unit="bytes",
                differs="1000000, which is less than a bookie writes"),
            Key("compactionRateByEntries", "garbage.rate_entries_per_s", int, "1000", "Maximum number of entries per"
                " second that a compaction copies in each ledger directory, if `isThrottleByBytes` is false.",
                old="compactionRate"),
            Key("forceAllowCompaction", "garbage.force_allows_disabled", bool, "false", "A forced compaction runs even"
                " if its kind is switched off."),
            Key("useTargetEntryLogSizeForGc", "garbage.usage_of_full_log", bool, "false", "Judge a log that is smaller"
                " than `logSizeLimit` as if it had that size."),
            Key("isForceGCAllowWhenNoSpace", "garbage.collect_when_full", bool, "false", "On a full disk, force a"
                " compaction, which needs room for its copies, instead of suspending it."),
        ),
    ),
    SCRUB,
    RECOVERY,
    CLIENT,
    Group(
        "Process",
        (
            Key("enableStatistics", "statistics.enabled", bool, "true", "Show metrics: docs/metrics.md. They are"
                " counted in any case."),
            Key("prometheusStatsLatencyRolloverSeconds", "statistics.rollover_s", int, "60", "Length of the window"
                " from which quantiles are computed.", low=1, high=86_400, unit="s"),
            Key("logFormat", "server.log_format", str, "keyvalue", "Format of the log on standard error.",
                choices=("keyvalue", "json")),
            Key("logLevel", "server.log_level", str, "info", "Lowest severity of messages that are logged.",
                choices=("debug", "info", "warning", "error")),
            Key("shutdownTimeoutMs", "server.shutdown_timeout_ms", int, "30000", "A stop that takes longer is aborted"
                " with exit code 2; the next start then replays the journal.", low=100, high=3_600_000, unit="ms"),
            Key("memoryLimitMb", "server.memory_limit_bytes", int, "0", "Upper limit of the sum of all memory budgets;"
                " 0 means what the machine and the control group allow.", high=1 << 24, unit="MiB", scale=MIB),
            Key("pythonSwitchIntervalMicros", "server.switch_interval_us", int, "500", "How long one Python thread may"
                " keep the others waiting. The data path has no Python threads; this helps admin calls and metadata.",
                low=10, high=1_000_000, unit="us"),
            Key("accessLogFile", "network.access_log", str, "", "Path of the access log, with lines about adds and"
                " reads that were answered (docs/operations.md); empty: no access log."),
            Key("accessLogSampleRate", "network.access_log_share", float, "0.01", "Share of requests that is logged"
                " there.", high=1),
            Key("accessLogFileSizeMb", "network.access_log_file_bytes_max", int, "64", "Size at which a file of the"
                " access log is closed.", low=1, high=1 << 20, unit="MiB", scale=MIB),
            Key("accessLogFilesMax", "network.access_log_files_max", int, "8", "Number of files of the access log that"
                " are kept, including the newest.", low=1, high=64),
        ),
    ),
    ADMIN,
    HTTP,
)  # fmt: skip

KEYS = {key.name: key for group in GROUPS for key in group.keys}
