"""The bookie as a process: settings, life cycle, supervision, the command `bookie-server`. Policy in Python, no bytes.

`main` is the command, `running` is what it does, and `lifecycle` has the order in which parts start and stop, after the
checks in `checking`. `data_port` is the data port, `control` is what planes and services may see and do, and `mode` is
whether the bookie accepts writes, and why not.

    metrics         what it measures
    requests        the requests that the I/O loops leave to Python
    logs            log lines: their format, limits on those that peers can cause, and the access log
    storage         garbage collection, scrub and reports on ledger storage, with settings and metadata store
    tls             TLS contexts of the data port, from files that may change
    disks           directories, their locks and markers, and the consequences of full disks
    process         memory, descriptors, ports, signals, supervision: what the process shares with its machine
    configuration   file and environment become frozen settings, or one clear error

Begin with `lifecycle`, then `configuration.keys`.

Leans on: bookie.storage, bookie.metadata, bookie.auth, bookie.metrics. Its order is a contract in pyproject.toml.
"""
