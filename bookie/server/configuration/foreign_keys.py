"""Keys of Apache BookKeeper that have no setting here, and how each of them is treated. Pure data."""

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
    "localScrubInterval": "the scrub has its own key: set scrubIntervalSeconds",
    "prometheusStatsHttpEnable": "metrics are served by the HTTP port: set httpServerEnabled=true",
}
"""Keys of Apache BookKeeper that would apply here but have no effect: accepted with a warning."""

IGNORED = frozenset(
    """
    allocatorExitOnOutOfMemory allocatorLeakDetectionPolicy allocatorOutOfMemoryPolicy allocatorPoolingConcurrency
    allocatorPoolingPolicy allowMultipleDirsUnderSameDiskPartition
    auditorAcquireConcurrentOpenLedgerOperationsTimeOutMSec bookieDeathWatchInterval byteBufAllocatorSizeInitial
    byteBufAllocatorSizeMax byteBufAllocatorSizeMin closeChannelOnResponseTimeout compactionMaxOutstandingRequests
    dataIntegrityStampMissingCookies dbStorage_directIOEntryLogger dbStorage_directIOEntryloggerMaxFdCacheTimeSeconds
    dbStorage_directIOEntryloggerReadBufferSizeMB dbStorage_directIOEntryloggerTotalReadBufferSizeMB
    dbStorage_directIOEntryloggerTotalWriteBufferSizeMB dbStorage_rocksDB_blockCacheSize dbStorage_rocksDB_blockSize
    dbStorage_rocksDB_bloomFilterBitsPerKey dbStorage_rocksDB_checksum_type dbStorage_rocksDB_format_version
    dbStorage_rocksDB_logLevel dbStorage_rocksDB_logPath dbStorage_rocksDB_lz4CompressionEnabled
    dbStorage_rocksDB_maxSizeInLevel1MB dbStorage_rocksDB_numFilesInLevel0 dbStorage_rocksDB_numLevels
    dbStorage_rocksDB_sstSizeInMB dbStorage_rocksDB_writeBufferSizeMB defaultRocksdbConf disableServerSocketBind
    enableLocalTransport enableTaskExecutionStats entryFormatterClass entryLocationCompactionInterval
    entryLocationRocksdbConf entryLogFilePreallocationEnabled entryLogPerLedgerCounterLimitsMultFactor
    exposeDefaultJVMMetrics extraServerComponents fileInfoCacheInitialCapacity fileInfoFormatVersionToWrite
    fileInfoMaxIdleTime flushEntrylogBytes gcEntryLogMetadataCacheEnabled gcEntryLogMetadataCachePath
    gcOverreplicatedLedgerMaxConcurrentRequests httpServerClass httpServerKeyStorePassword
    httpServerKeyStorePath httpServerTrustStorePassword httpServerTrustStorePath
    ignoreExtraServerComponentsStartupFailures journalAdaptiveGroupWrites journalChannelProvider
    journalPageCacheFlushIntervalMSec journalQueueSize journalRemoveFromPageCache journalWriteBufferSizeKB
    ledgerIdFormatterClass ledgerManagerFactoryClass ledgerMetadataRocksdbConf ledgerMetadataVersion
    ledgerStorageClass limitStatsLogging localConsistencyCheckOnStartup localScrubRateLimit
    maxOperationNumbersInSingleRocksdbWriteBatch numAddWorkerThreads numHighPriorityWorkerThreads
    numJournalCallbackThreads numLongPollWorkerThreads numOfMemtableFlushThreads openFileLimit pageLimit pageSize
    prometheusStatsHttpAddress prometheusStatsHttpPort readBufferSizeBytes
    readWorkerThreadsThrottlingEnabled requestTimerNumTicks requestTimerTickDurationMs
    serverNumAcceptorThreads serverTcpKeepCnt serverTcpKeepIdle serverTcpKeepIntvl skipListArenaChunkSize
    skipListArenaMaxAllocSize skipListSizeLimit sortedLedgerStorageEnabled statsProviderClass
    storeSystemTimeAsLedgerCreationTime underreplicatedLedgerRecoveryGracePeriod useTransactionalCompaction
    verifyMetadataOnGC waitTimeoutOnResponseBackpressureMs writeBufferSizeBytes zkReplicationTaskRateLimit
    zkRequestRateLimit
    """.split()  # noqa: SIM905 - a list would need a line a word
)
"""Keys of Apache BookKeeper that have no meaning here: accepted, and logged at debug level."""
