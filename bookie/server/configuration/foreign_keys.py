"""Keys of Apache BookKeeper that have no setting here, and how each of them is treated. Pure data."""

from bookie.server.configuration.client_keys import APPLICATIONS

__all__ = ["IGNORED", "LATER", "REFUSED"]

REFUSED = {
    "allowStorageExpansion": (
        "false",
        "directories cannot be added: the id of a ledger modulo their number is its directory",
    ),
    "journalFormatVersionToWrite": ("6", "journals are always written in version 6"),
    "permittedStartupUsers": ("", "the user that starts the bookie is not checked"),
    "zkEnableSecurity": ("false", "creator-only ACLs are not supported"),
}
"""Keys of Apache BookKeeper for which only the default is accepted, because ignoring another value would be unsafe."""

LATER = {
    "readTimeout": "its successors apply: set addEntryTimeoutSec and readEntryTimeoutSec",
    "speculativeReadTimeout": "its successors apply: set firstSpeculativeReadTimeout and maxSpeculativeReadTimeout",
    "localScrubInterval": "the scrub has its own key: set scrubIntervalSeconds",
    "prometheusStatsHttpEnable": "metrics are served by the HTTP port: set httpServerEnabled=true",
}
"""Keys of Apache BookKeeper that would apply here but have no effect: accepted with a warning."""

IGNORED = {
    "memory is allocated without Netty, and within the budgets of docs/limits.md":
        "allocatorExitOnOutOfMemory allocatorLeakDetectionPolicy allocatorOutOfMemoryPolicy"
        " allocatorPoolingConcurrency allocatorPoolingPolicy byteBufAllocatorSizeInitial byteBufAllocatorSizeMax"
        " byteBufAllocatorSizeMin nettyUsePooledBuffers readBufferSizeBytes writeBufferSizeBytes",
    "threads are divided as in docs/architecture.md":
        "enableBusyWait enableTaskExecutionStats numAddWorkerThreads numHighPriorityWorkerThreads numIOThreads"
        " numJournalCallbackThreads numLongPollWorkerThreads numOfMemtableFlushThreads numWorkerThreads"
        " preserveMdcForTaskExecution readWorkerThreadsThrottlingEnabled serverNumAcceptorThreads"
        " taskExecutionWarnTimeMicros",
    "timers and watchdogs are built in":
        "bookieDeathWatchInterval pcbcTimeoutTimerNumTicks pcbcTimeoutTimerTickDurationMs requestTimerNumTicks"
        " requestTimerTickDurationMs timeoutMonitorIntervalSec timeoutTaskIntervalMillis timeoutTimerNumTicks"
        " timeoutTimerTickDurationMs",
    "slow peers are bounded by the output budget":
        "closeChannelOnResponseTimeout waitTimeoutOnResponseBackpressureMs",
    "the index is LMDB":
        "dbStorage_rocksDB_blockCacheSize dbStorage_rocksDB_blockSize dbStorage_rocksDB_bloomFilterBitsPerKey"
        " dbStorage_rocksDB_checksum_type dbStorage_rocksDB_format_version dbStorage_rocksDB_logLevel"
        " dbStorage_rocksDB_logPath dbStorage_rocksDB_lz4CompressionEnabled dbStorage_rocksDB_maxSizeInLevel1MB"
        " dbStorage_rocksDB_numFilesInLevel0 dbStorage_rocksDB_numLevels dbStorage_rocksDB_sstSizeInMB"
        " dbStorage_rocksDB_writeBufferSizeMB defaultRocksdbConf entryLocationCompactionInterval"
        " entryLocationRocksdbConf ledgerMetadataRocksdbConf maxOperationNumbersInSingleRocksdbWriteBatch",
    "there is one ledger storage, with caches and entry logs of its own":
        "entryLogFilePreallocationEnabled entryLogPerLedgerCounterLimitsMultFactor fileInfoCacheInitialCapacity"
        " fileInfoFormatVersionToWrite fileInfoMaxIdleTime flushEntrylogBytes gcEntryLogMetadataCacheEnabled"
        " gcEntryLogMetadataCachePath ledgerStorageClass openFileLimit pageLimit pageSize skipListArenaChunkSize"
        " skipListArenaMaxAllocSize skipListSizeLimit sortedLedgerStorageEnabled useTransactionalCompaction"
        " verifyMetadataOnGC compactionMaxOutstandingRequests gcOverreplicatedLedgerMaxConcurrentRequests"
        " allowMultipleDirsUnderSameDiskPartition dataIntegrityStampMissingCookies",
    "entry logs are always written past the page cache":
        "dbStorage_directIOEntryLogger dbStorage_directIOEntryLoggerMaxFdCacheTimeSeconds"
        " dbStorage_directIOEntryLoggerReadBufferSizeMB dbStorage_directIOEntryLoggerTotalReadBufferSizeMB"
        " dbStorage_directIOEntryLoggerTotalWriteBufferSizeMB dbStorage_directIOEntryloggerMaxFdCacheTimeSeconds"
        " dbStorage_directIOEntryloggerReadBufferSizeMB dbStorage_directIOEntryloggerTotalReadBufferSizeMB"
        " dbStorage_directIOEntryloggerTotalWriteBufferSizeMB",
    "the journal forms its groups by itself":
        "journalAdaptiveGroupWrites journalChannelProvider journalPageCacheFlushIntervalMSec journalQueueSize"
        " journalRemoveFromPageCache journalWriteBufferSizeKB",
    "the scrub checks files while the bookie runs": "localConsistencyCheckOnStartup localScrubRateLimit",
    "there is one implementation of metadata for each scheme of `metadataServiceUri`":
        "allowShadedLedgerManagerFactoryClass enableHealthCheck ledgerManagerFactoryClass"
        " ledgerManagerFactoryDisableClassCheck ledgerMetadataVersion metastoreImplClass metastoreMaxEntriesPerScan"
        " registrationClientClass registrationManagerClass shadedLedgerManagerFactoryClassPrefix"
        " zkReplicationTaskRateLimit zkRequestRateLimit",
    "auto-recovery has other limits and delays":
        "auditorAcquireConcurrentOpenLedgerOperationsTimeOutMSec enableParallelRecoveryRead"
        " underreplicatedLedgerRecoveryGracePeriod",
    "sockets and registrations are set up in one way":
        "bookieAddressResolverEnabled clientConnectBookieUnavailableLogThrottling clientReceiveBufferSize clientRole"
        " clientSendBufferSize clientSockKeepalive clientTcpNoDelay clientTcpUserTimeoutMillis"
        " clientWriteBufferHighWaterMark clientWriteBufferLowWaterMark disableServerSocketBind"
        " enableBookieAddressTracking enableLocalTransport serverTcpKeepCnt serverTcpKeepIdle serverTcpKeepIntvl"
        " tcpKeepCnt tcpKeepIdle tcpKeepIntvl",
    "the client of a bookie reads PEM files without a password, and TLS starts within the limit of a connection":
        "clientKeyStorePasswordPath clientKeyStoreType clientTrustStorePasswordPath clientTrustStoreType"
        " startTLSTimeoutSecs",
    "metrics are built in: docs/metrics.md":
        "codahaleStatsCSVEndpoint codahaleStatsGraphiteEndpoint codahaleStatsJmxEndpoint"
        " codahaleStatsOutputFrequencySeconds codahaleStatsPrefix codahaleStatsSlf4jEndpoint"
        " exposeDefaultJVMMetrics limitStatsLogging prometheusStatsHttpAddress prometheusStatsHttpPort"
        " statsProviderClass",
    "the HTTP port is built in, and its TLS has keys of its own":
        "extraServerComponents httpServerClass httpServerKeyStorePassword httpServerKeyStorePath"
        " httpServerTrustStorePassword httpServerTrustStorePath ignoreExtraServerComponentsStartupFailures",
    "tools show ids and entries in one format": "entryFormatterClass ledgerIdFormatterClass",
    **APPLICATIONS,
}  # fmt: skip
"""Keys of Apache BookKeeper and of clients that have no meaning here, by the reason: accepted, and logged at debug
level.
"""
