"""The ledger storage: directories, recovery, checkpoints and cookies of one bookie, as policy over the compiled
modules.
"""
