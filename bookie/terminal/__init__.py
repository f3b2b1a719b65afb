"""What the commands share. Nothing here knows about bookies. Begin with `lazy`.

lazy             a group of subcommands, each imported when it is called; turns errors into one line and an exit code
output           tables for people, JSON and YAML for programs, and progress bars for terminals
closed_output    an output that takes no more
"""
