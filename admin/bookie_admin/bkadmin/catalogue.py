"""The commands of `bkadmin`: name, section and summary. This module holds data only, so that `bkadmin --help` does not
import any command.
"""

from bookie.terminal.lazy import Command

__all__ = ["COMMANDS", "INSTEAD"]

CLUSTER, LEDGERS, REPLICATION = "Cluster", "Ledgers", "Replication"
RUNNING, FILES = "A running bookie, through its admin port", "Files of a bookie"

COMMANDS: dict[str, Command] = {
    "standalone": Command(CLUSTER, "Run a cluster on this machine for development."),
    "bench": Command(CLUSTER, "Generate load and report rates and latencies."),
    "health": Command(CLUSTER, "Show on one screen whether the cluster needs an operator."),
    "bookieinfo": Command(CLUSTER, "Show free space and placement weight of every writable bookie."),
    "listbookies": Command(CLUSTER, "List bookies by state: writable, read-only or absent."),
    "clusterinfo": Command(CLUSTER, "Summarize the cluster in a few numbers."),
    "bookiesanity": Command(CLUSTER, "Write a ledger to one bookie, read it back and compare."),
    "endpointinfo": Command(CLUSTER, "Show the endpoints and properties that a bookie has registered."),
    "whatisinstanceid": Command(CLUSTER, "Show the instance id of the cluster."),
    "initnewcluster": Command(CLUSTER, "Create the metadata of a new cluster."),
    "metaformat": Command(CLUSTER, "Delete all metadata of the cluster and create a new one."),
    "nukeexistingcluster": Command(CLUSTER, "Delete all metadata of the cluster."),
    "metadata": Command(CLUSTER, "Copy the metadata of a cluster to another store, or compare two stores."),
    "cookie_get": Command(CLUSTER, "Show the cookie of a bookie in the metadata store."),
    "cookie_create": Command(CLUSTER, "Create a bookie's cookie in the metadata store from a file."),
    "cookie_update": Command(CLUSTER, "Replace a bookie's cookie in the metadata store with one from a file."),
    "cookie_delete": Command(CLUSTER, "Delete a bookie's cookie from the metadata store."),
    "cookie_generate": Command(CLUSTER, "Generate the cookie that matches a bookie's configuration."),
    "updatecookie": Command(CLUSTER, "Check the cookies of a stopped bookie, or change the id in them."),
    "listledgers": Command(LEDGERS, "List all ledgers, or those of one bookie."),
    "ledgermetadata": Command(LEDGERS, "Show, dump or restore the metadata of a ledger."),
    "deleteledger": Command(LEDGERS, "Delete a ledger; its bookies reclaim the space later."),
    "logs": Command(LEDGERS, "List, show or delete logs (named lists of ledgers), or forget a writer."),
    "write-close": Command(LEDGERS, "Announce to a ledger's bookies that it gets no more entries."),
    "readledger": Command(LEDGERS, "Read the entries of a ledger and verify them as a client does."),
    "produce": Command(LEDGERS, "Write the lines of standard input to a new ledger."),
    "consume": Command(LEDGERS, "Print the entries of a ledger or of a log as they are."),
    "tail": Command(LEDGERS, "Print the last entries of a ledger or of a log, and go on as others come."),
    "updatebookieinledger": Command(LEDGERS, "Replace a bookie's id in the metadata of all ledgers."),
    "updateledgers": Command(LEDGERS, "Switch a bookie's id between host name and IP address in all ledgers."),
    "simpletest": Command(LEDGERS, "Write a ledger, read it back and compare."),
    "whoisauditor": Command(REPLICATION, "Show which process is the auditor."),
    "autorecovery": Command(REPLICATION, "Run auto-recovery in this process, or enable or disable it."),
    "listunderreplicated": Command(REPLICATION, "List under-replicated ledgers and the bookies that lack a replica."),
    "lostbookierecoverydelay": Command(REPLICATION, "Show or set how long a bookie may be down before re-replication."),
    "decommissionbookie": Command(REPLICATION, "Have all ledgers of a stopped bookie re-replicated, and wait."),
    "recover": Command(REPLICATION, "Re-replicate the ledgers of stopped bookies from this process."),
    "restorebookie": Command(REPLICATION, "Copy to a bookie what it lacks of its ledgers from other replicas."),
    "triggeraudit": Command(REPLICATION, "Make the auditor look for lost bookies now."),
    "forceauditchecks": Command(REPLICATION, "Make the next auditor run its periodic checks at once."),
    "queryautorecoverystatus": Command(REPLICATION, "Show which ledgers are being re-replicated, and by which worker."),
    "status": Command(RUNNING, "Show a bookie's identity and state; --watch follows changes."),
    "metrics": Command(RUNNING, "Show metrics by name pattern; --watch adds rates."),
    "config": Command(RUNNING, "Show the configuration in effect, with secrets masked."),
    "readonly": Command(RUNNING, "Show read-only mode, or switch it on or off."),
    "flush": Command(RUNNING, "Flush the write caches to disk now."),
    "gc": Command(RUNNING, "Control garbage collection: status, force, suspend, resume."),
    "quarantine": Command(RUNNING, "List the ledgers in quarantine, or release one."),
    "scrub": Command(RUNNING, "Control the scrub of entry logs: status, start, pause, resume, pace."),
    "entrylogs": Command(RUNNING, "List the entry logs, or the ledgers of one of them."),
    "sanity": Command(RUNNING, "Make the bookie write a few entries, read them back and compare."),
    "loglevel": Command(RUNNING, "Show the log levels, or set one until the next restart."),
    "bookieid": Command(FILES, "Show the bookie id that a configuration results in."),
    "samples": Command(FILES, "List or print sample files: configurations, units, manifests, dashboards, alerts."),
    "initbookie": Command(FILES, "Create the cookies of a new bookie."),
    "replacedisk": Command(FILES, "Prepare an empty disk in place of one whose data are lost."),
    "clearlimbo": Command(FILES, "Let a stopped bookie trust the closed ledgers that are in limbo."),
    "bookieformat": Command(FILES, "Delete all data of a stopped bookie."),
    "ledger": Command(FILES, "Show where a ledger's entries lie in the entry logs; --admin asks a running bookie."),
    "readlog": Command(FILES, "List the records of an entry log."),
    "readlogmetadata": Command(FILES, "List the ledgers of an entry log and how many bytes each has in it."),
    "activeledgers": Command(FILES, "List the ledgers of an entry log that still exist."),
    "readjournal": Command(FILES, "List the records of a journal file."),
    "lastmark": Command(FILES, "Show the last mark of each journal; --admin asks a running bookie."),
    "listfilesondisc": Command(FILES, "List every file of a bookie by kind."),
    "localconsistencycheck": Command(FILES, "Check entry logs, journals and index against each other."),
    "rebuild-db-ledgers-index": Command(FILES, "Rebuild the index with its ledger records; fences every ledger."),
    "rebuild-db-ledger-locations-index": Command(FILES, "Rebuild the location index from the entry logs."),
}

INSTEAD = {
    "check-db-ledgers-index": "ledger records are part of the index: use bkadmin localconsistencycheck",
    "convert-to-db-storage": "not needed: a bookie converts the disks of a Java bookie when it first starts on them",
    "convert-to-interleaved-storage": "to go back to a Java bookie, run `python -m bookie.storage.takeover.give_back`",
    "help": "use bkadmin --help or bkadmin COMMAND --help",
    "regenerate-interleaved-storage-index-file": "this storage has no such files; to rebuild the index, use bkadmin"
    " rebuild-db-ledger-locations-index",
}
"""Commands of Apache BookKeeper's shell that do not apply to this storage, with what to use instead. The exit code is
2.
"""
