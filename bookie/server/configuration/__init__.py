"""The configuration file: its syntax, every key, and the frozen settings that the rest of the server takes.

`properties` reads the syntax of the file. `key` describes one key, and `keys` lists all of them, with those of the
admin and HTTP ports, auto-recovery, the bookie's own client and the scrub in modules of their own; `foreign_keys`
lists keys of Apache BookKeeper that set nothing here. `loader` turns file and environment into `settings`, or raises
one of `errors`. `reference` prints the table of keys in docs/configuration.md.

Begin with `key` and `keys`, then `loader`.

Leans on: bookie.storage, bookie.auth and bookie.metadata, for the settings that they own.
"""
