"""The commands of `bkadmin`: name, section and summary. Data alone, so that --help loads none of them."""

from bookie.terminal.lazy import Command

__all__ = ["COMMANDS", "INSTEAD"]

CLUSTER, LEDGERS, REPLICATION = "Cluster", "Ledgers", "Replication"
RUNNING, FILES = "A running bookie, by its admin port", "Files of a bookie"

COMMANDS: dict[str, Command] = {
    "standalone": Command(CLUSTER, "Run a cluster on this machine, for development."),
    "bench": Command(CLUSTER, "Drive load, and tell rates and latencies."),
    "bookieinfo": Command(CLUSTER, "Free and total space of all writable bookies, and their weights in placement."),
    "listbookies": Command(CLUSTER, "Bookies by state: writable, read-only, or known by their cookie alone."),
    "clusterinfo": Command(CLUSTER, "The cluster in a few numbers."),
    "bookiesanity": Command(CLUSTER, "Write to one bookie, read it back and compare."),
    "endpointinfo": Command(CLUSTER, "What a bookie publishes about itself: endpoints and properties."),
    "whatisinstanceid": Command(CLUSTER, "The instance id of the cluster."),
    "initnewcluster": Command(CLUSTER, "Create the metadata of a new cluster."),
    "metaformat": Command(CLUSTER, "Delete all metadata of the cluster and make a new one."),
    "nukeexistingcluster": Command(CLUSTER, "Delete all metadata of the cluster."),
    "cookie_get": Command(CLUSTER, "The cookie of a bookie in the metadata store."),
    "cookie_create": Command(CLUSTER, "Put a cookie from a file into the metadata store."),
    "cookie_update": Command(CLUSTER, "Replace a bookie's cookie in the metadata store by one from a file."),
    "cookie_delete": Command(CLUSTER, "Remove a bookie's cookie from the metadata store."),
    "cookie_generate": Command(CLUSTER, "The cookie that a configuration asks for, as text."),
    "updatecookie": Command(CLUSTER, "Look at a stopped bookie's cookies, or write them under another id."),
    "listledgers": Command(LEDGERS, "The ids of all ledgers, or of those on one bookie."),
    "ledgermetadata": Command(LEDGERS, "The metadata of a ledger: state, quorums, ensembles."),
    "deleteledger": Command(LEDGERS, "Remove a ledger's metadata; its bookies drop the entries later."),
    "logs": Command(LEDGERS, "Logs, which are named lists of ledgers: list, show, delete, forget a writer."),
    "write-close": Command(LEDGERS, "Tell the bookies of a ledger that nothing more will be written to it."),
    "readledger": Command(LEDGERS, "The entries of a ledger, read and verified as a client does."),
    "updatebookieinledger": Command(LEDGERS, "Name another bookie in all ledgers that name one."),
    "updateledgers": Command(LEDGERS, "Name a bookie by its host's name, or by its address, in all ledgers."),
    "simpletest": Command(LEDGERS, "Write a ledger, read it back and compare."),
    "whoisauditor": Command(REPLICATION, "Which process is the auditor now."),
    "autorecovery": Command(REPLICATION, "Run auto-recovery here; or switch that of the cluster on or off."),
    "listunderreplicated": Command(REPLICATION, "Ledgers that lack replicas, and on which bookies."),
    "lostbookierecoverydelay": Command(REPLICATION, "How long a bookie may be away before its ledgers are copied."),
    "decommissionbookie": Command(REPLICATION, "Have all that a stopped bookie holds copied, and wait for it."),
    "recover": Command(REPLICATION, "Copy all that stopped bookies hold, here and now."),
    "triggeraudit": Command(REPLICATION, "Have the auditor look for lost bookies now."),
    "forceauditchecks": Command(REPLICATION, "Let the next auditor run its periodic checks at once."),
    "queryautorecoverystatus": Command(REPLICATION, "Who copies which ledger now."),
    "status": Command(RUNNING, "What a bookie is and how it fares; --watch tells changes."),
    "metrics": Command(RUNNING, "What it measures, filtered; --watch shows rates."),
    "config": Command(RUNNING, "Its configuration, secrets masked."),
    "readonly": Command(RUNNING, "Whether it takes writes; switch that on or off."),
    "flush": Command(RUNNING, "Have it write its caches to disk now."),
    "gc": Command(RUNNING, "Garbage collection: status, force, suspend, resume."),
    "quarantine": Command(RUNNING, "Its ledgers in quarantine: list them, lift one."),
    "scrub": Command(RUNNING, "Its scrub of entry logs: status, start, pause, resume, pace."),
    "entrylogs": Command(RUNNING, "Its entry logs, and the ledgers of one."),
    "sanity": Command(RUNNING, "Have it write a few entries, read them back and compare."),
    "loglevel": Command(RUNNING, "Its log levels; set one until the next restart."),
    "bookieid": Command(FILES, "The id that a configuration gives its bookie."),
    "initbookie": Command(FILES, "Make the cookies of a new bookie."),
    "bookieformat": Command(FILES, "Delete everything that a stopped bookie holds."),
    "ledger": Command(FILES, "Where a ledger's entries lie in a bookie's entry logs; --admin asks a running bookie."),
    "readlog": Command(FILES, "The records of an entry log."),
    "readlogmetadata": Command(FILES, "The ledgers of an entry log, and their bytes in it."),
    "activeledgers": Command(FILES, "The ledgers of an entry log that still exist."),
    "readjournal": Command(FILES, "The records of a journal file."),
    "lastmark": Command(FILES, "Up to where the journals are checkpointed; --admin asks a running bookie."),
    "listfilesondisc": Command(FILES, "Every file of a bookie by kind."),
    "localconsistencycheck": Command(FILES, "Check entry logs, journals and index against each other."),
    "rebuild-db-ledgers-index": Command(FILES, "Rebuild the whole index, ledger records too; fences every ledger."),
    "rebuild-db-ledger-locations-index": Command(FILES, "Rebuild the location index from the entry logs."),
}

INSTEAD = {
    "check-db-ledgers-index": "the ledger records are part of the one index: bkadmin localconsistencycheck",
    "convert-to-db-storage": "a bookie takes over the disks of a Java bookie at its first start on them",
    "convert-to-interleaved-storage": "the way back to a Java bookie is `python -m bookie.storage.takeover.give_back`",
    "help": "bkadmin --help, or bkadmin COMMAND --help",
    "regenerate-interleaved-storage-index-file": "there are no such files here; of the index: bkadmin"
    " rebuild-db-ledger-locations-index",
}
"""Commands of Apache BookKeeper's shell that mean nothing to our storage, and what to do. Exit code 2."""
