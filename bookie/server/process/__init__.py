"""The process on its machine: memory, descriptors, ports, signals, and an end when it must not go on.

`budget` compares the sum of all memory with what the machine allows, `shares` divides descriptors among the ports, and
`ports` asks whether a port is free. `signals` receives requests to stop, and `supervisor` ends a process that must not
go on. `notify` speaks to systemd, and `progress` shows long work at start. `repeating` is a thread that calls a
function at intervals.

Begin with `supervisor`, then `budget`.

Leans on: server.configuration, and the compiled modules for fatal errors and descriptors.
"""
