"""Replay of one journal file into the stores: recovery's inner loop.

The first pass is single-threaded, before anything is served, and takes every record but entries for which neither the
write cache nor a full disk has room. Their ledgers lag: nothing of them is denied. Later passes, by the flush thread
beside a bookie that serves, bring those entries as room comes.
"""
