"""Flips single bits in the files of a serving bookie in a cluster of three: `python -m tests.crash.flips --help`.

cluster    three bookies, what was written to them, and the answers of the damaged one
files      which bytes are flipped: entry logs, index, marks, cookies, journals
rounds     flips, reads, scrubs, restarts and remedies, and the outcome of each flip
"""
