"""The ledger storage of one bookie: directories, recovery, checkpoints, cookies; policy over compiled modules."""
