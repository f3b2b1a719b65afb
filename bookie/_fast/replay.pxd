"""Replay of one journal file into the stores: recovery's inner loop. Single-threaded, before anything is served."""
