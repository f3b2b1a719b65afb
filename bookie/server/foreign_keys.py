"""Keys of Apache BookKeeper that fill no setting here, and what becomes of each. Pure data."""

__all__ = ["IGNORED", "LATER", "REFUSED"]

REFUSED = {
    "allowStorageExpansion": ("false", "directories cannot be added: a ledger belongs to (id modulo count) of them"),
    "httpServerTlsEnable": ("false", "there is no HTTP server"),
    "journalFormatVersionToWrite": ("6", "journals are written in version 6"),
    "permittedStartupUsers": ("", "start-up users are not checked"),
    "zkEnableSecurity": ("false", "creator-only ACLs are not supported"),
}
"""Keys of Apache BookKeeper that only their default fits: another value must not be ignored."""

LATER = {
    "autoRecoveryDaemonEnabled": "re-replication is not part of this version",
    "dataIntegrityChecking": "the integrity check is not part of this version",
    "httpServerEnabled": "there is no HTTP server in this version",
    "localScrubInterval": "scrubbing is not part of this version",
    "prometheusStatsHttpEnable": "metrics are not exported in this version",
}
"""Keys of Apache BookKeeper whose meaning applies, but not yet: accepted with a warning."""

IGNORED = frozenset(
    """
    allocatorExitOnOutOfMemory allocatorLeakDetectionPolicy allocatorOutOfMemoryPolicy allocatorPoolingConcurrency
    allocatorPoolingPolicy allowMultipleDirsUnderSameDiskPartition auditorLedgerVerificationPercentage
    auditorMaxNumberOfConcurrentOpenLedgerOperations auditorAcquireConcurrentOpenLedgerOperationsTimeOutMSec
    auditorPeriodicBookieCheckInterval auditorPeriodicCheckInterval auditorPeriodicPlacementPolicyCheckInterval
    auditorReplicasCheckInterval bookieDeathWatchInterval byteBufAllocatorSizeInitial byteBufAllocatorSizeMax
    byteBufAllocatorSizeMin closeChannelOnResponseTimeout compactionMaxOutstandingRequests
    dataIntegrityStampMissingCookies dbStorage_directIOEntryLogger dbStorage_directIOEntryloggerMaxFdCacheTimeSeconds
    dbStorage_directIOEntryloggerReadBufferSizeMB dbStorage_directIOEntryloggerTotalReadBufferSizeMB
    dbStorage_directIOEntryloggerTotalWriteBufferSizeMB dbStorage_rocksDB_blockCacheSize dbStorage_rocksDB_blockSize
    dbStorage_rocksDB_bloomFilterBitsPerKey dbStorage_rocksDB_checksum_type dbStorage_rocksDB_format_version
    dbStorage_rocksDB_logLevel dbStorage_rocksDB_logPath dbStorage_rocksDB_lz4CompressionEnabled
    dbStorage_rocksDB_maxSizeInLevel1MB dbStorage_rocksDB_numFilesInLevel0 dbStorage_rocksDB_numLevels
    dbStorage_rocksDB_sstSizeInMB dbStorage_rocksDB_writeBufferSizeMB defaultRocksdbConf disableServerSocketBind
    enableLocalTransport enableStatistics enableTaskExecutionStats entryFormatterClass
    entryLocationCompactionInterval entryLocationRocksdbConf entryLogFilePreallocationEnabled
    entryLogPerLedgerCounterLimitsMultFactor exposeDefaultJVMMetrics
    extraServerComponents fileInfoCacheInitialCapacity fileInfoFormatVersionToWrite fileInfoMaxIdleTime
    flushEntrylogBytes gcEntryLogMetadataCacheEnabled gcEntryLogMetadataCachePath
    gcOverreplicatedLedgerMaxConcurrentRequests
    httpServerClass httpServerHost httpServerKeyStorePassword httpServerKeyStorePath httpServerPort
    httpServerTrustStorePassword httpServerTrustStorePath ignoreExtraServerComponentsStartupFailures
    inFlightReadEntryNumInLedgerChecker journalAdaptiveGroupWrites
    journalChannelProvider journalPageCacheFlushIntervalMSec journalQueueSize journalRemoveFromPageCache
    journalWriteBufferSizeKB ledgerIdFormatterClass ledgerManagerFactoryClass ledgerMetadataRocksdbConf
    ledgerMetadataVersion ledgerStorageClass limitStatsLogging localConsistencyCheckOnStartup localScrubRateLimit
    lockReleaseOfFailedLedgerGracePeriod lostBookieRecoveryDelay
    maxOperationNumbersInSingleRocksdbWriteBatch

    numAddWorkerThreads numHighPriorityWorkerThreads numJournalCallbackThreads numLongPollWorkerThreads
    numOfMemtableFlushThreads openFileLimit openLedgerRereplicationGracePeriod pageLimit pageSize
    prometheusStatsHttpAddress prometheusStatsHttpPort prometheusStatsLatencyRolloverSeconds readBufferSizeBytes
    readWorkerThreadsThrottlingEnabled repairedPlacementPolicyNotAdheringBookieEnabled replicationRateByBytes
    requestTimerNumTicks requestTimerTickDurationMs rereplicationEntryBatchSize rwRereplicateBackoffMs
    sanityCheckMetricsEnabled serverNumAcceptorThreads serverTcpKeepCnt serverTcpKeepIdle serverTcpKeepIntvl
    skipListArenaChunkSize skipListArenaMaxAllocSize skipListSizeLimit sortedLedgerStorageEnabled statsProviderClass
    storeSystemTimeAsLedgerCreationTime storeSystemTimeAsLedgerUnderreplicatedMarkTime
    underreplicatedLedgerRecoveryGracePeriod
    useTransactionalCompaction verifyMetadataOnGC waitTimeoutOnResponseBackpressureMs
    writeBufferSizeBytes zkReplicationTaskRateLimit zkRequestRateLimit
    """.split()  # noqa: SIM905 - a list would need a line a word
)
"""Keys of Apache BookKeeper that have no meaning here: accepted, mentioned at debug level."""
