"""The index of a ledger directory: where each run of consecutive entries lies, in LMDB; docs/formats/index.md.

`location` is the index as the store uses it, `opening` opens it, and `writes` its write transaction. `codec` packs
runs and ledger records, `commit_value` packs what a commit says about itself, and `table` keeps runs from
overlapping. Look-ups do not trust LMDB's pages: `search` reads them with pread, and `guard`, `branch_sums` and
`snapshot` check them against what was committed. `pending` keeps runs in memory that LMDB does not have yet.
`doubts`, `salvage` and `rebuild` deal with a damaged index. `view` shows an index to Python.

Begin with `codec`, `table` and `location`.

Leans on: base, entrylog.
"""
