# Memory for each ledger that may be held, including those that recoveries add, and the fences of deleted ones.
LEDGER_BYTES: int
