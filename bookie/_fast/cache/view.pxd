"""The runs of a ledger as Python sees them, for tests; no contract for other modules."""
