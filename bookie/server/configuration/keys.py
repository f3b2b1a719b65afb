"""Every key of the configuration file: type, default, range, unit, meaning, and the settings field it fills.

Pure data. Names are Apache BookKeeper's where the meaning is the same; where our default is another, `differs` says
what theirs is and why. `loader` walks this table, `reference` prints it.
"""

from bookie._fast.base.bounds import BOUNDS
from bookie.server.configuration.admin_keys import ADMIN
from bookie.server.configuration.http_keys import HTTP
from bookie.server.configuration.key import Group, Key, Value
from bookie.server.configuration.loop_settings import loop_keys
from bookie.server.configuration.recovery_keys import RECOVERY
from bookie.server.configuration.scrub_keys import SCRUB
from bookie.storage.settings import MIB

__all__ = ["Group", "GROUPS", "Key", "KEYS", "Value"]

GIB = 1 << 30

GROUPS = (
    Group(
        "Identity and network",
        (
            Key("bookiePort", "network.port identity.port", int, "3181", "Port for clients. 0 lets the system choose;"
                " that needs `allowEphemeralPorts` and a `bookieId`.", high=65535),
            Key("bookieId", "identity.bookie_id", str, "", "Fixed identity, instead of one made from host and port."),
            Key("advertisedAddress", "identity.advertised_address", str, "", "Address that clients are told. Set"
                " without `listeningInterface`, all interfaces are bound. Neither set: only 127.0.0.1 is served, and"
                " only where `allowLoopback` permits it.", differs="unset, a bookie binds every interface"),
            Key("listeningInterface", "identity.listening_interface", str, "", "Network interface whose address is"
                " bound, and told to clients where `advertisedAddress` is unset."),
            Key("useHostNameAsBookieID", "identity.use_host_name", bool, "false", "Tell clients the host's"
                " name. Set without `listeningInterface`, all interfaces are bound."),
            Key("useShortHostName", "identity.use_short_host_name", bool, "false", "Cut the host name at its first"
                " dot."),
            Key("allowLoopback", "identity.allow_loopback", bool, "false", "Permit an identity on 127.x, which no"
                " other machine can reach."),
            Key("allowEphemeralPorts", "server.allow_ephemeral_ports", bool, "false", "Permit `bookiePort=0`."),
            Key("serverNumIOThreads", "network.io_threads", int, "0", "I/O loops; 0 is one for each CPU.", high=1024,
                differs="2 x CPUs: our loops never block, a second one on a CPU only adds switches"),
            *loop_keys(),
            Key("policyThreads", "network.policy_threads", int, "2", "Threads for bookie info and lists of entries,"
                " and as many for authentication. Adds and reads never wait for them.", low=1, high=64),
            Key("maxPendingPolicyRequests", "network.policy_queue_max", int, "1000", "Requests waiting for those"
                " threads, a sixteenth of them from one connection, and as many logins. More requests are refused with"
                " `ETOOMANYREQUESTS`, more logins by closing the connection.", low=1, high=1_000_000),
            Key("policyQueueSizeMb", "network.policy_bytes_max", int, "16", "Memory for those requests, half of it for"
                " logins.", low=1, high=1 << 16, unit="MiB", scale=MIB),
        ),
    ),
    Group(
        "Authentication",
        (
            Key("bookieAuthProviderFactoryClass", "auth.provider", str, "", "Who is let in: `token`, `sasl`,"
                " `certificate`, Apache BookKeeper's class name for one of them, or an installed provider; unset:"
                " everybody. docs/security.md has examples."),
            Key("authTokenFile", "auth.token_file", str, "", "For `token`: the file with the tokens, `token`,"
                " `role:token` or `role:name:token` a line, of roles `read`, `write` and `admin`;"
                " unset: the environment variable `BOOKIE_AUTH_TOKEN`."),
            Key("saslJaasConfigFile", "auth.jaas_file", str, "", "For `sasl`: the JAAS file with the users, as Java"
                " reads it from `java.security.auth.login.config`."),
            Key("saslJaasBookieSectionName", "auth.jaas_section", str, "Bookie", "Its section for bookies."),
            Key("saslJaasClientAllowedIds", "auth.allowed_ids", str, ".*bookkeeper.*", "Regular expression that the"
                " name of a user must match as a whole."),
            Key("authorizedRoles", "auth.authorized_roles", str, "", "For `certificate`: roles that are let in,"
                " separated by commas; a certificate names its role in the subject: `OU=0:role`."),
            Key("authorizedCertificateNames", "auth.authorized_names", str, "", "For `certificate`: subject alternative"
                " names (DNS, URI, e-mail) that are let in, separated by commas."),
            Key("authProviderFile", "auth.provider_file", str, "", "For an installed provider: a file of its own."),
            Key("authFilesRefreshDurationSeconds", "network.auth_refresh_s", int, "10", "Look this often whether"
                " `authTokenFile` or `saslJaasConfigFile` has changed. Connections of tokens and users that are gone,"
                " or have another role or password now, end. 0 never looks.", high=86_400, unit="s"),
            Key("authMessageSizeMax", "network.auth_bytes_max", int, "65536", "Largest frame before its sender is"
                " authenticated; the length of a larger one costs the connection.", low=1024, high=16 * MIB,
                unit="bytes"),
        ),
    ),
    Group(
        "TLS",
        (
            Key("tlsProviderFactoryClass", "tls.provider_factory", str, "", "Offer TLS to clients that ask for it"
                " (START_TLS): `org.apache.bookkeeper.tls.TLSContextFactory`; unset: no TLS. docs/security.md has an"
                " example."),
            Key("tlsProvider", "", str, "OpenSSL", "OpenSSL does the work for either value.",
                choices=("openssl", "jdk")),
            Key("tlsKeyStoreType", "tls.key_store_type", str, "PEM", "Form of `tlsKeyStore`; `JKS` is refused with a"
                " remedy.", choices=("pem", "pkcs12", "jks"), differs="JKS"),
            Key("tlsKeyStore", "tls.key_store", str, "", "File with the private key (PEM), or with key and certificates"
                " (PKCS12)."),
            Key("tlsKeyStorePasswordPath", "tls.key_store_password_path", str, "", "File with the password of"
                " `tlsKeyStore`; unset: it has none."),
            Key("tlsCertificatePath", "tls.certificate_path", str, "", "PEM file with this bookie's certificate,"
                " followed by those between it and the root."),
            Key("tlsTrustStoreType", "tls.trust_store_type", str, "PEM", "Form of `tlsTrustStore`; `JKS` is refused"
                " with a remedy.", choices=("pem", "pkcs12", "jks"), differs="JKS"),
            Key("tlsTrustStore", "tls.trust_store", str, "", "File with the certificates that those of clients must"
                " lead to."),
            Key("tlsTrustStorePasswordPath", "tls.trust_store_password_path", str, "", "File with the password of"
                " `tlsTrustStore`; unset: it has none."),
            Key("tlsClientAuthentication", "tls.client_authentication", bool, "false", "A client that asks for TLS must"
                " show a certificate. Connections in clear are not affected: require authentication for that."),
            Key("tlsRequired", "tls.required", bool, "false", "In clear nothing is served but the request for TLS: no"
                " login, no other request, on any interface."),
            Key("tlsLoginInClearAllowed", "tls.clear_login", bool, "true", "A login in clear counts inside TLS where it"
                " is a challenge's answer, and may stand behind the request for TLS, as Java's clients with users send"
                " it. Never with `tlsRequired`."),
            Key("tlsEnabledProtocols", "tls.protocols", str, "", "`TLSv1.2`, `TLSv1.3`, or both, separated by commas;"
                " unset: both."),
            Key("tlsEnabledCipherSuites", "tls.cipher_suites", str, "", "Cipher suites separated by commas, named as"
                " Java or as OpenSSL does; unset: those that are safe and fast."),
            Key("tlsCertFilesRefreshDurationSeconds", "tls.refresh_s", int, "60", "Look this often whether the files"
                " have changed; new connections then use the new ones. 0 never looks.", high=86_400, unit="s",
                differs="0: a renewed certificate should not need a restart"),
            Key("tlsIOThreads", "tls.io_threads", int, "1", "I/O loops for encrypted connections. They leave those in"
                " clear alone.", low=1, high=16),
            Key("tlsHandshakeTimeoutMs", "tls.handshake_timeout_ms", int, "10000", "A handshake that takes longer"
                " costs the connection.", low=100, high=3_600_000, unit="ms"),
            Key("tlsHandshakesMax", "tls.handshakes_max", int, "4096", "Handshakes at a time; further ones are refused"
                " by closing the connection.", low=1, high=1_000_000),
            Key("tlsHandshakesMaxPerAddress", "tls.handshakes_per_address_max", int, "256", "Of these, from one"
                " address: who asks for TLS and says nothing more keeps nobody else out.", low=1, high=1_000_000),
        ),
    ),
    Group(
        "Metadata",
        (
            Key("metadataServiceUri", "metadata.service_uri", str, "", "Metadata store:"
                " `zk+hierarchical://host:2181/ledgers` (several hosts separated by `;`), or `lmdb:///directory` for"
                " the store embedded in this bookie.", differs="none, derived from `zkServers` as here"),
            Key("zkServers", "", str, "", "Older form: ZooKeeper servers `host:port`, separated by commas; used when"
                " `metadataServiceUri` is unset."),
            Key("zkLedgersRootPath", "", str, "/ledgers", "Older form: root path of the cluster, with `zkServers`."),
            Key("ledgerManagerType", "", str, "null", "Older form: ledger layout, with `zkServers`; `null` takes the"
                " one that the cluster has.", choices=("flat", "hierarchical", "longhierarchical", "null")),
            Key("zkTimeout", "metadata.session_timeout_ms", int, "10000", "ZooKeeper session timeout.", low=100,
                high=3_600_000, unit="ms"),
            Key("zkRetryBackoffStartMs", "metadata.backoff_start_ms", int, "1000", "First pause before registering"
                " anew.", low=1, unit="ms", differs="zkTimeout: a short interruption should not cost ten seconds"),
            Key("zkRetryBackoffMaxMs", "metadata.backoff_max_ms", int, "10000", "Longest pause between two attempts.",
                low=1, unit="ms"),
            Key("zkRetryBackoffMaxRetries", "metadata.retries_max", int, "-1", "Retries after the session is lost,"
                " before the bookie ends with exit code 3; -1 is without end.", low=-1),
        ),
    ),
    Group(
        "Directories and disks",
        (
            Key("journalDirectories", "journal.directories", tuple, "", "Where journals lie, one journal each; a disk"
                " of its own is best. The order matters.", required=True, old="journalDirectory",
                differs="a directory under /tmp: nothing durable belongs under /tmp"),
            Key("ledgerDirectories", "storage.ledger_directories", tuple, "", "Where entry logs lie. The order"
                " matters: a ledger belongs to the directory (ledger id modulo count).", required=True,
                differs="a directory under /tmp: nothing durable belongs under /tmp"),
            Key("indexDirectories", "storage.index_directories", tuple, "", "Where the indexes lie, as many as ledger"
                " directories. Unset: in the ledger directories."),
            Key("diskUsageThreshold", "disks.usage_max", float, "0.95", "In use above this, a directory is full.",
                low=0.01, high=0.999),
            Key("diskUsageWarnThreshold", "disks.usage_warn", float, "0.90", "In use above this, the log warns and no"
                " major compaction runs.", low=0.01, high=0.999),
            Key("diskUsageLwmThreshold", "disks.usage_low", float, "0", "Once all ledger directories were full, their"
                " disks together must fall below this; 0 is `diskUsageThreshold`.", high=0.999),
            Key("diskCheckInterval", "disks.check_interval_ms", int, "10000", "Pause between two checks.", low=10,
                high=3_600_000, unit="ms"),
            Key("readOnlyModeEnabled", "disks.read_only_allowed", bool, "true", "A full bookie becomes read-only;"
                " false: it ends with exit code 5."),
            Key("readOnlyModeOnAnyDiskFullEnabled", "disks.any_full_is_read_only", bool, "true",
                "One full ledger directory is enough to become read-only; false: all must be full.",
                differs="false up to 4.17: ledgers are bound to directories, a full one rejects its share of the"
                " adds"),
            Key("minUsableSizeForEntryLogCreation", "disks.log_room_bytes", int, "-1", "A full directory with so much"
                " left still takes new entry logs of a compaction; -1 is `logSizeLimit`.", low=-1, high=1 << 50,
                unit="bytes"),
            Key("minUsableSizeForIndexFileCreation", "disks.index_room_bytes", int, str(100 * MIB), "What an index"
                " directory must have left for adds of a recovery to a full bookie.", high=1 << 50, unit="bytes"),
            Key("minUsableSizeForHighPriorityWrites", "disks.recovery_room_bytes", int, "-1", "A read-only bookie takes"
                " adds of a recovery while every ledger directory has so much left; -1 is"
                " `minUsableSizeForEntryLogCreation`.", low=-1, high=1 << 50, unit="bytes"),
            Key("persistBookieStatusEnabled", "disks.keep_status", bool, "false", "Keep over a restart whether the"
                " bookie was read-only: an operator's wish stays, a disk that was full is judged by"
                " `diskUsageLwmThreshold`."),
            Key("forceReadOnlyBookie", "disks.force_read_only", bool, "false", "Start read-only and stay so."),
        ),
    ),
    Group(
        "Journal",
        (
            Key("journalMaxSizeMB", "journal.file_bytes_max", int, "128", "A journal file is closed at this size.",
                low=16, high=BOUNDS.journal_file_bytes // MIB, unit="MiB", scale=MIB, differs="2048: files behind the"
                " backups are written again, which smaller ones reach sooner"),
            Key("journalMaxBackups", "journal.backups_max", int, "5", "Journal files kept behind the checkpoint.",
                high=10_000),
            Key("journalMaxBacklogMB", "journal.backlog_bytes_max", int, "0", "A journal that holds more than this for"
                " ledger directories that were not flushed takes no more adds; at half of it at the latest, what such"
                " directories have in memory is journaled again, so that older files can go. 0: a quarter of its disk,"
                " shared by all journals.", high=1 << 24, unit="MiB", scale=MIB),
            Key("journalPreAllocSizeMB", "journal.prealloc_bytes", int, "64", "A journal file grows by this much,"
                " zeroed ahead of the writes.", low=1, high=4096, unit="MiB", scale=MIB,
                differs="16: growing costs a metadata commit of the file system, so it should be rare"),
            Key("journalMaxMemorySizeMb", "", int, "0", "Memory for entries waiting for the journal, over all"
                " journals; when it is full, sockets are no longer read. 0 is 32 for each journal.", high=1 << 16,
                unit="MiB", scale=MIB, differs="5 % of Java's direct memory"),
            Key("journalAlignmentSize", "journal.alignment_bytes", int, "4096", "Groups are padded to a multiple of"
                " this.", low=512, high=65536, unit="bytes", multiple=512, differs="512: a write of less than the"
                " file system's block reads the block first"),
            Key("journalSyncData", "journal.sync_data", bool, "true", "Acknowledge an add after its journal group is"
                " on disk; false: once it is in the page cache, which a power cut loses."),
            Key("journalWriteData", "journal.write_data", bool, "true", "Write entries to the journal at all; false:"
                " a crash loses acknowledged entries, and the start after it is refused."),
            Key("dataIntegrityChecking", "storage.check_integrity", bool, "false", "Do start after such a crash:"
                " ledgers that may lack entries come back fenced and in limbo, where nothing is denied."),
            Key("journalMaxGroupWaitMSec", "journal.group_wait_ms", float, "2", "Longest wait of an add for its group"
                " to fill, where `journalFlushWhenQueueEmpty` is false.", high=1000, unit="ms"),
            Key("journalBufferedWritesThreshold", "journal.group_bytes", int, "524288", "A group of this size is"
                " written without further wait.", high=256 * MIB, unit="bytes"),
            Key("journalBufferedEntriesThreshold", "journal.group_entries", int, "0", "A group of so many entries is"
                " written without further wait; 0 is no limit."),
            Key("journalFlushWhenQueueEmpty", "journal.flush_when_empty", bool, "true", "Write a group as soon as the"
                " last one is on disk.", differs="false: a group is what arrived during the last sync, and a lone"
                " writer need not wait for the timer"),
            Key("journalReuseFiles", "journal.reuse_files", bool, "true", "Write new journals over old ones behind"
                " the checkpoint.", differs="false: writing into blocks that exist syncs faster than into fresh ones;"
                " the checksum of each group tells old bytes from new"),
            Key("skipReplayJournalInvalidRecord", "storage.skip_damaged_journal", bool, "false",
                "Start even though a journal is damaged in its middle, and lose what follows the damage in that"
                " file."),
            Key("takeOverFencingAll", "storage.fence_all", bool, "false", "Take over a Java bookie's disks even where"
                " its index of ledgers cannot be read: every ledger is then fenced, and explicit LACs are lost."),
        ),
    ),
    Group(
        "Ledger storage",
        (
            Key("dbStorage_writeCacheMaxSizeMb", "storage.write_cache_bytes", int, "512",
                "Entries that wait for the entry log, both halves, all directories together.", low=2, high=1 << 20,
                unit="MiB", scale=MIB, differs="25 % of Java's direct memory"),
            Key("dbStorage_readAheadCacheMaxSizeMb", "storage.read_cache_bytes", int, "512",
                "Entries read from entry logs, all directories together.", low=2, high=1 << 20, unit="MiB", scale=MIB,
                differs="25 % of Java's direct memory"),
            Key("dbStorage_readCacheSegmentSizeMb", "storage.read_segment_bytes", int, "64",
                "The read cache is emptied in pieces of this size.", low=1, high=1024, unit="MiB", scale=MIB),
            Key("dbStorage_uncachedReadMaxSizeMb", "storage.uncached_read_bytes", int, "0", "Memory for entries read"
                " while the read cache waits for slow readers; beyond it reads wait, at most a second, or are refused"
                " with `ETOOMANYREQUESTS`; 0 is twice `nettyMaxFrameSizeBytes`, 16 MiB at least.", high=1 << 20,
                unit="MiB", scale=MIB),
            Key("dbStorage_readAheadCacheBatchSize", "storage.readahead_entries", int, "1000",
                "Entries read ahead of who goes in order.", high=1_000_000, differs="100: reading on costs little once"
                " the disk is there"),
            Key("dbStorage_readAheadCacheBatchBytesSize", "storage.readahead_bytes", int, str(4 * MIB),
                "Bytes read ahead of who goes in order; -1 is no limit but half the read cache.", low=-1, high=GIB,
                unit="bytes", differs="-1: large entries times many would empty the cache for one reader"),
            Key("dbStorage_adaptiveReadAhead", "storage.adaptive_readahead", bool, "false", "Read ahead less while much"
                " of what was read ahead leaves the read cache unused, and more again up to the two keys above."),
            Key("dbStorage_rereadTableMb", "storage.reread_table_bytes", int, "4", "Memory to tell by which entries are"
                " read from disk again: 1 MiB for some 4 million entries; 0 counts none.", high=1 << 14, unit="MiB",
                scale=MIB),
            Key("dbStorage_maxThrottleTimeMs", "storage.throttle_ms_max", int, "10000", "Longest wait of an add for"
                " room in the write cache; then it is refused with `ETOOMANYREQUESTS`.", high=3_600_000, unit="ms"),
            Key("dbStorage_indexMapSizeGb", "storage.index_map_bytes", int, "1024", "Address space reserved for each"
                " index; neither memory nor disk; an index that fills it gets twice as much.", low=1, high=1 << 16,
                unit="GiB", scale=GIB),
            Key("dbStorage_maxLedgers", "storage.ledgers_max", int, "500000", "Ledgers that the bookie holds, over all"
                " directories, some 400 bytes of memory each; new ones beyond are refused to their writers with"
                " `EREADONLY`, those that are there go on. Recoveries and fences may bring an eighth more. Fences of"
                " deleted ledgers are kept in as many; until older ones go, fenced ledgers are not deleted.", low=1,
                high=1_000_000_000),
            Key("flushSizeMb", "storage.flush_bytes", int, "64", "Entries in the write cache that start a checkpoint"
                " before its time; a quarter of the write cache if that is less.", low=1, high=1 << 20, unit="MiB",
                scale=MIB),
            Key("flushInterval", "storage.flush_interval_ms", int, "10000", "Pause between two checkpoints.", low=1,
                high=86_400_000, unit="ms"),
            Key("logSizeLimit", "storage.log_bytes_max", int, str(GIB), "An entry log is closed at this size.",
                low=MIB, high=BOUNDS.log_limit_bytes, unit="bytes"),
            Key("entryLogPerLedgerEnabled", "storage.log_per_ledger", bool, "false", "Give each ledger an entry log of"
                " its own: its entries lie side by side, and its files go with it. For few, long ledgers:"
                " docs/operations.md tells when."),
            Key("entrylogMapAccessExpiryTimeInSeconds", "storage.log_idle_ms_max", int, "300", "Where it has: a log"
                " that nobody has written to for so long is closed.", low=1, high=86_400, unit="s", scale=1000),
            Key("maximumNumberOfActiveEntryLogs", "storage.ledger_logs_max", int, "500", "Where it has: logs that take"
                " entries at a time, over all directories; for one more, the coldest is closed. Each takes a"
                " descriptor and 6 KiB.", low=1, high=1_000_000),
            Key("openEntryLogLimit", "storage.open_logs_max", int, "256", "Entry logs held open for reads.", low=4,
                high=1_000_000),
            Key("numReadWorkerThreads", "storage.read_threads", int, "32", "Threads that read from disk. Hits in a"
                " cache need none.", low=1, high=1024),
            Key("maxPendingReadRequests", "storage.read_queue_max", int, "10000", "Reads waiting for the disk; more"
                " are refused with `ETOOMANYREQUESTS`.", low=1, high=10_000_000),
        ),
    ),
    Group(
        "Garbage collection and compaction",
        (
            Key("gcWaitTime", "garbage.wait_ms", int, "600000", "Pause between two collections, and before the first.",
                low=10, unit="ms"),
            Key("gcMetadataOpRateLimit", "garbage.metadata_reads_per_s", int, "1000", "Most reads a second that verify"
                " that a ledger is gone. None is deleted without.", low=1),
            Key("gcDeleteShareMax", "garbage.delete_share_max", float, "0.5", "Should more of the bookie's ledgers than"
                " this go at once, none goes, and an alarm stands until an operator forces it; 1: any number.", high=1),
            Key("gcFencedDeletedLedgerKeepTime", "garbage.fence_kept_ms", int, "604800000", "The writer of a ledger"
                " that was fenced, then deleted, is refused for this long. Upstream's is fixed.", low=0, unit="ms"),
            Key("gcOverreplicatedLedgerWaitTime", "garbage.over_replicated_interval_ms", int, "86400000", "Look this"
                " often for closed ledgers that have moved to other bookies; those found twice in a row go. 0 or less:"
                " never.", low=-1, unit="ms"),
            Key("minorCompactionThreshold", "garbage.minor_threshold", float, "0.2", "Minor compaction takes logs whose"
                " live share is below this; 0 or less: none.", low=-1, high=1),
            Key("minorCompactionInterval", "garbage.minor_interval_s", int, "3600", "Pause between two of them; 0 or"
                " less: only forced ones.", low=-1, unit="s"),
            Key("minorCompactionMaxTimeMillis", "garbage.minor_ms_max", int, "-1", "One begins no further log after"
                " this; 0 or less: no limit.", low=-1, unit="ms"),
            Key("majorCompactionThreshold", "garbage.major_threshold", float, "0.8", "The same for major compaction.",
                low=-1, high=1),
            Key("majorCompactionInterval", "garbage.major_interval_s", int, "86400", "The same for major compaction.",
                low=-1, unit="s"),
            Key("majorCompactionMaxTimeMillis", "garbage.major_ms_max", int, "-1", "The same for major compaction.",
                low=-1, unit="ms"),
            Key("isThrottleByBytes", "garbage.throttle_by_bytes", bool, "true", "Pace compaction by bytes; false: by"
                " entries.", differs="false: entries say little about the work of a disk"),
            Key("compactionRateByBytes", "garbage.rate_bytes_per_s", int, str(32 * MIB), "Bytes a second that"
                " a compaction may copy; 0: as fast as the disk.", unit="bytes", differs="1000000: a bookie writes"
                " more than that"),
            Key("compactionRateByEntries", "garbage.rate_entries_per_s", int, "1000", "The same in entries, where"
                " `isThrottleByBytes` is false.", old="compactionRate"),
            Key("forceAllowCompaction", "garbage.force_allows_disabled", bool, "false", "A forced compaction runs also"
                " where its kind is switched off."),
            Key("useTargetEntryLogSizeForGc", "garbage.usage_of_full_log", bool, "false", "Judge a log that is smaller"
                " than `logSizeLimit` as if it were that large."),
            Key("isForceGCAllowWhenNoSpace", "garbage.collect_when_full", bool, "false", "On a full disk force a"
                " compaction, which needs room for what it copies, instead of suspending it."),
        ),
    ),
    SCRUB,
    RECOVERY,
    Group(
        "Process",
        (
            Key("enableStatistics", "statistics.enabled", bool, "true", "Show metrics: docs/metrics.md. They are"
                " counted all the same."),
            Key("prometheusStatsLatencyRolloverSeconds", "statistics.rollover_s", int, "60", "Quantiles are of the last"
                " window of this length.", low=1, high=86_400, unit="s"),
            Key("logFormat", "server.log_format", str, "keyvalue", "Form of the log on standard error.",
                choices=("keyvalue", "json")),
            Key("logLevel", "server.log_level", str, "info", "Least severe message that is logged.",
                choices=("debug", "info", "warning", "error")),
            Key("shutdownTimeoutMs", "server.shutdown_timeout_ms", int, "30000", "A stop that takes longer is broken"
                " off with exit code 2; the next start then replays the journal.", low=100, high=3_600_000, unit="ms"),
            Key("memoryLimitMb", "server.memory_limit_bytes", int, "0", "The sum of all memory budgets must stay"
                " below this; 0 is what the machine and the control group allow.", high=1 << 24, unit="MiB",
                scale=MIB),
            Key("pythonSwitchIntervalMicros", "server.switch_interval_us", int, "500", "How long one Python thread"
                " may keep the others waiting. The data path has no Python threads; this serves admin calls and"
                " metadata.", low=10, high=1_000_000, unit="us"),
            Key("accessLogFile", "network.access_log", str, "", "Path of a file for a line about adds and reads that"
                " were answered (docs/operations.md); empty: none is kept."),
            Key("accessLogSampleRate", "network.access_log_share", float, "0.01", "Share that it tells of.", high=1),
            Key("accessLogFileSizeMb", "network.access_log_file_bytes_max", int, "64", "It is closed at this size.",
                low=1, high=1 << 20, unit="MiB", scale=MIB),
            Key("accessLogFilesMax", "network.access_log_files_max", int, "8", "Such files, the newest included.",
                low=1, high=64),
        ),
    ),
    ADMIN,
    HTTP,
)  # fmt: skip

KEYS = {key.name: key for group in GROUPS for key in group.keys}
