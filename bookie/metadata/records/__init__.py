"""The values that every metadata store keeps, and their bytes: pure functions, without a connection.

`ledger_metadata` is one ledger, and `ledger_codec` reads and writes it in the three versions that Apache BookKeeper
has used. `logs` is a named list of ledgers, with its bytes. `replication` has the names and texts of marks, locks,
checks and votes, which are shared with Java's auditors and replication workers.

Begin with `ledger_metadata`.

Leans on: bookie.errors, bookie.pb, and the compiled CRC.
"""
