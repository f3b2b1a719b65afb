"""`bkadmin`, the command-line tool for clusters and bookies. Each command has a file of its own.

    main          the command; its entry point, loading subcommands and printing results are in bookie/terminal/
    catalogue     the names, sections and summaries of all commands, which is all that `bkadmin --help` needs
    options       options that several commands share, and how to get from them to a metadata store or a bookie's files
    admin_port    the options and the client for the admin port of a running bookie
    commands/     one file for each command

No command stays running, except `standalone`, `autorecovery` and those with `--watch`. A command that only reads
changes nothing. A command that destroys data asks for confirmation, unless it is called with --yes.
"""
