"""The process on its machine: memory, descriptors, ports, signals, and its end when it must not continue.

`budget` compares the sum of all memory budgets with what the machine allows, `shares` divides descriptors among the
ports, and `ports` checks whether a port is free. `signals` handles requests to stop, and `supervisor` ends a process
that must not continue. `notify` notifies systemd, and `progress` shows long work at start. `repeating` is a thread
that calls a function at intervals.

Begin with `supervisor`, then `budget`.

Leans on: server.configuration, and the compiled modules for fatal errors and descriptors.
"""
