"""The compiled part of the bookie: bytes, files, caches and sockets on plain C memory, without the GIL.

The packages, lowest first. A module may use its own package and those that its package's docstring names after
"Leans on"; `tests/test_tidy.py` enforces that.

    base        C types, locks, files, checksums, TLS, and the limits that everything else is built on
    wire        requests, responses and records as bytes
    client      the client's side of the protocol: framing requests, matching responses
    entrylog    entry log files: writing, scanning, reading
    index       where each run of entries lies: packed runs in LMDB
    journal     group commit, and reading journals back
    cache       pages and runs of records in memory: the write cache and the read cache
    store       ledger directories: adds, reads, checkpoints, replay and garbage collection
    server      connections, I/O loops, and the data port's requests
    testing     disk faults that tests plan, and slow disks for measurements; not part of a release build

Each module has a `.pxd`, which is its contract (units, owner, thread), and a `.pyx` with the bodies; a `.pyi` where
Python uses it. C sources lie in `csrc`.
"""
