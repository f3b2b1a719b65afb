"""The ledger storage: policy over the compiled rooms. Directories, recovery, checkpoints, cookies of one bookie."""
