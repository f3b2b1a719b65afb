"""The bookie as a process: settings, life cycle, supervision, the command `bookie-server`. Python policy, no bytes.

properties  the syntax of a configuration file          keys       every key, its type, range and meaning
config      file + environment -> frozen settings       settings   the settings that belong to this package
reference   the table of keys in docs/configuration.md  identity   the name under which the bookie is known
directories locks, the DIRTY marker                     budget     the sum of all memory, against the machine
lifecycle   what starts after what, and stops           supervisor ends the process when it must not go on
data_port   the bookie's own port                       disks      full disks make the bookie read-only
control     what the admin plane may see and do         logs       key=value or JSON lines
main        the command
"""
