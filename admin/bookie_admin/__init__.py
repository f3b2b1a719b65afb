"""The admin plane: the gRPC and HTTP services of a bookie, its web console, and the command-line tool `bkadmin`."""
