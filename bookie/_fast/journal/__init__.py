"""The journal: adds are durable once their group is written and synced here; docs/formats/journal.md has the layout.

`commit` gathers adds into groups, writes and syncs a group, and publishes its number. `files` prepares, rolls and
reuses the files, `state` is the memory that both share, and `backlog` tells how far checkpoints lag behind. `reader`
verifies a journal and walks its records, for replay and for tools.

Begin with `state`, then `commit`.

Leans on: base, wire.
"""
