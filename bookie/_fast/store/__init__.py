"""Ledger directories: caches, index and entry log working together behind adds, fences and reads.

`stores` describes the state of all directories, and `storage` opens and closes one. `ledger_writes` is the path of
adds and fences; `gather` answers reads from memory, and `read_path` with `read_pool` those that need the disk.
`flush` writes the write cache of a directory to disk, with `index_slices` for its index, `checkpoint` does so in
all directories and moves the marks, each directory on a thread of its own (`flushers`), and `replay` brings a
journal back at start. `direct` drives all of it without a socket, for tests and tools. Package `gc` reclaims disk
space and repairs indexes.

Begin with `stores`, `ledger_writes`, `flush` and `checkpoint`.

Leans on: base, wire, entrylog, index, journal, cache, store.gc.
"""
