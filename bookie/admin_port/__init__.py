"""How commands, other bookies and remote metadata stores connect to a bookie's admin port.

`channel` opens a gRPC channel, encrypted and authenticated as the port requires. `own_token` is the token that a
bookie creates for processes of its own user on its own machine, and how they find it. `pem` checks keys and
certificates before gRPC gets them. The port itself is implemented by the package `admin`, which nothing here imports.

Begin with `channel`.

Leans on: bookie.errors, bookie.durable, bookie.secret_files.
"""
