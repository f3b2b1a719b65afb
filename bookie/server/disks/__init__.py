"""The directories of a bookie: created, locked, marked while in use, and monitored for full and failing disks.

`directories` creates and locks them, and `dirty` marks those in use, so that the next start knows of an unclean end.
`state` assesses what they can take, `monitor` measures them on a thread and notifies followers, and `watched` says
which ones are monitored. `status_file` keeps over a restart whether the bookie was read-only.

Begin with `state`, then `monitor`.

Leans on: server.mode, server.process, server.configuration, bookie.storage.
"""
