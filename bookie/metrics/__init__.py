"""Metrics as plain values, and their text formats. Producers return families; exporters need to know nothing else."""
