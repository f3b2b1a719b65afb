"""Entries as values: their digests, and what answers to reads hold before and after the digests were verified.

Leans on the compiled records (`bookie._fast.wire`, and `bookie._fast.client` for runs of reads), on nothing else of the
client. Nothing here waits. Begin with `batch`, the bytes as a bookie stores them; `verified` is what a reader gets.

digest        digest types and keys; sealing and opening entries
batch         the answer to a batch read, as stored: one buffer and numpy offsets
verified      what a reader gets: batches of verified entries
read_answers  the answers to single reads that were asked together
"""
