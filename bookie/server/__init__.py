"""The bookie as a process: settings, life cycle, supervision, the command `bookie-server`. Python policy, no bytes.

`main` is the command, and `lifecycle` says what starts after what and stops before what. `data_port` is the bookie's
own port, `control` is what planes and services may see and do, and `mode` is whether it takes writes and who is
against.

    metrics         what it measures
    requests        the requests that the I/O loops leave to Python
    logs            lines in the log: their format, and those that peers can bring about; the access log
    storage         garbage collection, scrub and reports on ledger storage, wired to settings and metadata store
    tls             contexts of the data port, from files that may change
    disks           directories, their locks and markers, and what full disks lead to
    process         memory, descriptors, ports, signals, supervision: what the process shares with its machine
    configuration   file and environment become frozen settings, or one clear error

Begin with `lifecycle`, then `configuration.keys`.

Leans on: bookie.storage, bookie.metadata, bookie.auth, bookie.metrics. Its order is a contract in pyproject.toml.
"""
