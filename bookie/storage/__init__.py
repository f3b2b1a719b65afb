"""The ledger storage: policy over the compiled modules. Directories, recovery, checkpoints, cookies of one bookie."""
