"""What the commands of this project share; nothing here knows of bookies.

lazy      a group of subcommands, each loaded when it is called; errors become a line and an exit code
output    tables for people, JSON and YAML for programs, a progress bar on a terminal
"""
