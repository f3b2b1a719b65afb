"""Replay of a journal file into the stores: the inner loop of recovery.

The first pass is single-threaded, before anything is served. It takes all records except entries for which neither the
write cache nor a full disk has room; their ledgers lag, and none of their entries is denied. Later passes, by the
flush thread of a bookie that serves, take these entries as room becomes available.
"""
