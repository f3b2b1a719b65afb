"""The runs of a ledger for tests in Python; not for other modules."""
