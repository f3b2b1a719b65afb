"""Single bits flipped in the files of a serving bookie of a three-bookie cluster: `python -m tests.crash.flips --help`.

cluster    three bookies, what was written, and what the damaged one answers by itself
files      which bytes are flipped: entry logs, index, marks, cookies, journals
rounds     flips, reads, a scrub, restarts, remedies, and what came of each flip
"""
