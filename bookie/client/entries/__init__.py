"""Entries as values: digests, and the responses to reads before and after their digests were verified.

It is built on the compiled modules for records (`bookie._fast.wire`, and `bookie._fast.client` for runs of reads) and
on no other package of the client. Nothing here waits. Begin reading with `batch`, the bytes as a bookie stores them;
`verified` is what a reader gets.

digest        digest types and keys; sealing and opening entries
batch         the response to a batch read, as stored: one buffer and numpy offsets
verified      batches of verified entries
read_answers  the responses to a group of single reads
"""
