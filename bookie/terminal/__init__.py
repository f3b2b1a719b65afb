"""What the commands share. Nothing here knows about bookies, except for the names of the commands. Begin with `lazy`.

entry            the entry points of all commands, and Ctrl-C while they are imported
lazy             a group of subcommands, each imported when it is called; turns errors into one line and an exit code
output           tables for people, JSON and YAML for programs, and progress bars for terminals
closed_output    an output that takes no more
"""
