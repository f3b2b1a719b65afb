"""The commands of `bkadmin`: name, section, summary and an example. This module holds data only, so that
`bkadmin --help` does not import any command.
"""

from bookie.terminal.lazy import Command

__all__ = ["COMMANDS", "INSTEAD"]

CLUSTER, LEDGERS, REPLICATION = "Cluster", "Ledgers", "Replication"
RUNNING, FILES = "A running bookie, through its admin port", "Files of a bookie"

COMMANDS: dict[str, Command] = {
    "standalone": Command(
        CLUSTER, "Run a cluster on this machine for development.", "--bookies 3 --directory ~/ledgers"
    ),
    "bench": Command(
        CLUSTER, "Generate load and report rates and latencies.", "--duration 10 --entry-size 1024 -e 3 -w 3 -a 2"
    ),
    "health": Command(CLUSTER, "Show on one screen whether the cluster needs an operator.", "--full 85"),
    "bookieinfo": Command(CLUSTER, "Show free space and placement weight of every bookie.", "-o json"),
    "listbookies": Command(CLUSTER, "List bookies by state: writable, read-only or absent.", "--readwrite"),
    "clusterinfo": Command(CLUSTER, "Summarize the cluster in a few numbers.", "-o yaml"),
    "bookiesanity": Command(
        CLUSTER, "Write a ledger to one bookie, read it back and compare.", "h1:3181 --entries 100"
    ),
    "endpointinfo": Command(CLUSTER, "Show the endpoints and properties that a bookie has registered.", "h1:3181"),
    "whatisinstanceid": Command(
        CLUSTER, "Show the instance id of the cluster.", "-u zk+hierarchical://h1:2181/ledgers"
    ),
    "initnewcluster": Command(CLUSTER, "Create the metadata of a new cluster.", "-u zk+hierarchical://h1:2181/ledgers"),
    "metaformat": Command(CLUSTER, "Delete all metadata of the cluster and create a new one.", "--dry-run"),
    "nukeexistingcluster": Command(
        CLUSTER, "Delete all metadata of the cluster.", "--instanceid 48387231-a5c8-4e14-9ad0-1cb57523dae0"
    ),
    "metadata": Command(
        CLUSTER,
        "Copy the metadata of a cluster to another store, or compare two stores.",
        "copy zk+hierarchical://h1:2181/ledgers etcd://h1:2379,h2:2379,h3:2379/ledgers",
    ),
    "cookie_get": Command(CLUSTER, "Show the cookie of a bookie in the metadata store.", "h1:3181"),
    "cookie_create": Command(
        CLUSTER, "Create a bookie's cookie in the metadata store from a file.", "h1:3181 --cookie-file cookie"
    ),
    "cookie_update": Command(
        CLUSTER, "Replace a bookie's cookie in the metadata store with one from a file.", "h1:3181 --cookie-file cookie"
    ),
    "cookie_delete": Command(CLUSTER, "Delete a bookie's cookie from the metadata store.", "h1:3181 --dry-run"),
    "cookie_generate": Command(
        CLUSTER, "Generate the cookie that matches a bookie's configuration.", "h1:3181 --conf bk.conf > cookie"
    ),
    "updatecookie": Command(
        CLUSTER,
        "Check the cookies of a stopped bookie, or change the id in them.",
        "--bookieid --old 10.0.0.7:3181 --conf bk.conf",
    ),
    "listledgers": Command(LEDGERS, "List all ledgers, or those of one bookie.", "--meta --bookie h1:3181"),
    "ledgermetadata": Command(
        LEDGERS, "Show, dump or restore the metadata of a ledger.", "12 --dump-to-file ledger-12.metadata"
    ),
    "deleteledger": Command(LEDGERS, "Delete a ledger; its bookies reclaim the space later.", "12"),
    "logs": Command(LEDGERS, "List, show or delete logs (named lists of ledgers), or forget a writer.", "show orders"),
    "write-close": Command(LEDGERS, "Announce to a ledger's bookies that it gets no more entries.", "12 15 18"),
    "readledger": Command(
        LEDGERS,
        "Read the entries of a ledger and verify them as a client does.",
        "12 --firstentryid 0 --lastentryid 9 --msg",
    ),
    "produce": Command(LEDGERS, "Write the lines of standard input to a new ledger.", "--log orders < lines.txt"),
    "consume": Command(LEDGERS, "Print the entries of a ledger or of a log as they are."),
    "tail": Command(
        LEDGERS,
        "Print the last entries of a ledger or of a log, and go on as others come.",
        "--log orders --entries 20",
    ),
    "updatebookieinledger": Command(
        LEDGERS,
        "Replace a bookie's id in the metadata of all ledgers.",
        "--src-bookie h1:3181 --dest-bookie h9:3181 --dry-run",
    ),
    "updateledgers": Command(
        LEDGERS,
        "Switch a bookie's id between host name and IP address in all ledgers.",
        "--bookieid hostname --dry-run",
    ),
    "simpletest": Command(LEDGERS, "Write a ledger, read it back and compare.", "-e 3 -w 3 -a 2 --num-entries 1000"),
    "whoisauditor": Command(REPLICATION, "Show which process is the auditor.", "-o json"),
    "autorecovery": Command(REPLICATION, "Run auto-recovery in this process, or enable or disable it.", "--disable"),
    "listunderreplicated": Command(
        REPLICATION, "List under-replicated ledgers and the bookies that lack a replica.", "--missing-replica h1:3181"
    ),
    "lostbookierecoverydelay": Command(
        REPLICATION, "Show or set how long a bookie may be down before re-replication.", "--set 600"
    ),
    "decommissionbookie": Command(
        REPLICATION, "Have all ledgers of a stopped bookie re-replicated, and wait.", "h1:3181"
    ),
    "recover": Command(
        REPLICATION, "Re-replicate the ledgers of stopped bookies from this process.", "h1:3181,h2:3181 --query"
    ),
    "restorebookie": Command(
        REPLICATION, "Copy to a bookie what it lacks of its ledgers from other replicas.", "h1:3181 --query"
    ),
    "triggeraudit": Command(
        REPLICATION, "Make the auditor look for lost bookies now.", "-u zk+hierarchical://h1:2181/ledgers"
    ),
    "forceauditchecks": Command(
        REPLICATION, "Make the next auditor run its periodic checks at once.", "--replicascheck"
    ),
    "queryautorecoverystatus": Command(
        REPLICATION, "Show which ledgers are being re-replicated, and by which worker.", "-o json"
    ),
    "status": Command(
        RUNNING, "Show a bookie's identity and state; --watch follows changes.", "--admin h1:3182 --watch"
    ),
    "metrics": Command(RUNNING, "Show metrics by name pattern; --watch adds rates.", "'bookie_journal*' --watch 5"),
    "config": Command(
        RUNNING, "Show the configuration in effect, with secrets masked.", "journalDirectories ledgerDirectories"
    ),
    "readonly": Command(RUNNING, "Show read-only mode, or switch it on or off.", "on --admin h1:3182"),
    "flush": Command(RUNNING, "Flush the write caches to disk now.", "--admin h1:3182"),
    "gc": Command(RUNNING, "Control garbage collection: status, force, suspend, resume.", "force --major --wait"),
    "quarantine": Command(RUNNING, "List the ledgers in quarantine, or release one.", "lift 12"),
    "scrub": Command(RUNNING, "Control the scrub of entry logs: status, start, pause, resume, pace.", "start --wait"),
    "entrylogs": Command(RUNNING, "List the entry logs, or the ledgers of one of them.", "3f --directory 0"),
    "sanity": Command(RUNNING, "Make the bookie write a few entries, read them back and compare.", "--admin h1:3182"),
    "loglevel": Command(
        RUNNING, "Show the log levels, or set one until the next restart.", "debug bookie.storage.garbage"
    ),
    "bookieid": Command(FILES, "Show the bookie id that a configuration results in.", "--conf bk.conf"),
    "samples": Command(FILES, "List or print sample files: configurations, units, manifests, dashboards, alerts."),
    "initbookie": Command(FILES, "Create the cookies of a new bookie.", "--conf bk.conf"),
    "replacedisk": Command(
        FILES, "Prepare an empty disk in place of one whose data are lost.", "/data/2/ledgers --conf bk.conf --dry-run"
    ),
    "clearlimbo": Command(
        FILES, "Let a stopped bookie trust the closed ledgers that are in limbo.", "--conf bk.conf --dry-run"
    ),
    "bookieformat": Command(FILES, "Delete all data of a stopped bookie.", "--conf bk.conf --dry-run"),
    "ledger": Command(
        FILES,
        "Show where a ledger's entries lie in the entry logs; --admin asks a running bookie.",
        "12 --admin h1:3182",
    ),
    "readlog": Command(FILES, "List the records of an entry log.", "3f --conf bk.conf --ledgerid 12"),
    "readlogmetadata": Command(
        FILES, "List the ledgers of an entry log and how many bytes each has in it.", "3f --conf bk.conf"
    ),
    "activeledgers": Command(FILES, "List the ledgers of an entry log that still exist.", "3f --conf bk.conf"),
    "readjournal": Command(
        FILES, "List the records of a journal file.", "/data/1/journal/current/19ac3f1d2b7.txn --conf bk.conf"
    ),
    "lastmark": Command(FILES, "Show the last mark of each journal; --admin asks a running bookie.", "--conf bk.conf"),
    "listfilesondisc": Command(FILES, "List every file of a bookie by kind.", "--entrylog --conf bk.conf"),
    "localconsistencycheck": Command(
        FILES, "Check entry logs, journals and index against each other.", "--conf bk.conf"
    ),
    "rebuild-db-ledgers-index": Command(
        FILES, "Rebuild the index with its ledger records; fences every ledger.", "--conf bk.conf --dry-run"
    ),
    "rebuild-db-ledger-locations-index": Command(
        FILES, "Rebuild the location index from the entry logs.", "--conf bk.conf --dry-run"
    ),
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
