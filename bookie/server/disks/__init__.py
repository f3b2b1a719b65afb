"""The directories of a bookie: made, locked, marked while in use, and watched for full and failing disks.

`directories` makes and locks them, and `dirty` marks those in use, so that the next start knows of an unclean end.
`state` judges what they can take, `monitor` measures them on a thread and tells whoever follows, and `watched` says
which are watched. `status_file` keeps over a restart whether the bookie was read-only.

Begin with `state`, then `monitor`.

Leans on: server.mode, server.process, server.configuration, bookie.storage.
"""
