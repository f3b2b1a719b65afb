"""The bookie as a process: settings, life cycle, supervision, the command `bookie-server`. Python policy, no bytes.

properties  the syntax of a configuration file          keys       every key, its type, range and meaning
config      file + environment -> frozen settings       settings   the settings that belong to this package
reference   the table of keys in docs/configuration.md  tls        contexts of the data port, and their files
directories locks; dirty: what an unclean end may lose  budget     the sum of all memory, against the machine
lifecycle   what starts after what, and stops           supervisor ends the process when it must not go on
data_port   the bookie's own port                       requests/  what its loops do not answer themselves
disks       full disks make the bookie read-only        mode       whether it takes writes, and who is against it
control     what planes and services may see and do     metrics/   what it measures
access_log  lines about adds and reads                  logs       key=value or JSON lines
repeating   a thread that comes back every so often     main       the command
"""
