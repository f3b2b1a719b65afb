"""Requests, responses and records as bytes: pure functions on memory, without sockets, files or state.

`v2` and `v3` parse requests into the `request` that the data path works on, whichever protocol it came in; `v2` and
`v3_answers` write responses. `record` walks runs of `u32 length | entry`, which is how journals, entry logs, caches and
batch responses all store entries, and `digest` checks what a client appended to one. `record_rows` and `row_file` turn
records into columns for Arrow.

Begin with `request`, then `v2`.

Leans on: base.
"""
