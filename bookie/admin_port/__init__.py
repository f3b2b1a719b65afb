"""The way to the admin port of a bookie, for whoever calls it: commands, other bookies, and remote metadata stores.

`channel` opens a gRPC channel, encrypted and with a token or a certificate where the port asks for them. `own_token` is
the token that a bookie makes for the processes of its own user on its own machine, and how they find it. The port
itself is package `admin`, which nothing here imports.

Begin with `channel`.

Leans on: bookie.errors, bookie.durable, bookie.secret_files.
"""
