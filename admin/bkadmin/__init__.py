"""`bkadmin`: what an operator does to a cluster and to a bookie's files, one command a file.

    main          the command itself; how it loads subcommands and what it prints is bookie/terminal/
    catalogue     names, sections and summaries: all that the first --help needs
    options       options that commands share, and what they lead to: the metadata store, a bookie's directories
    commands/     one file each

Nothing here stays running. Commands that only look change nothing; those that destroy ask first, or want --yes.
"""
