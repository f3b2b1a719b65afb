"""Replay of a journal file into the stores: the inner loop of recovery.

The first pass runs in one thread, before anything is served. It fills one half of each write cache while the
directory's flusher flushes the other (module store.flushers). It takes all records except entries for which neither the
write cache nor a full disk has room; their ledgers lag, and none of their entries is denied. Later passes, by the
flush thread of a bookie that serves, take these entries as room becomes available.
"""
