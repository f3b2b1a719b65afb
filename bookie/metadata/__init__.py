"""Ledger metadata, and which bookies are alive: the part of the cluster that is not in a bookie.

Start with `driver` (what a store can do, and `open_driver`). Then by idea:

    uri  layout  ledger_paths               where things are
    ledger_metadata  ledger_codec           one ledger, and its bytes
    logs  changing_logs                     named lists of ledgers, their bytes, and how they change
    identity  service_info  registration    who a bookie is, what it publishes, and how it stays registered
    bookie_states                           which bookies there are: writable, read-only, absent
    replication                             which ledgers lack replicas, who copies them, and who looks for them
    watching                                the thread that re-reads what changed and tells listeners
    zookeeper  zookeeper_*                  the store that Apache BookKeeper clusters use
    key_values  key_value_*                 the same driver over versioned keys, which come from
    embedded  remote                        LMDB in this process, or the process that owns it (gRPC)
"""

from bookie.metadata.driver import open_driver

__all__ = ["open_driver"]
