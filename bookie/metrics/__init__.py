"""Metrics as plain values, and their text. Whoever measures gives families; whoever shows them knows nothing else."""
