"""A log-storage server compatible with Apache BookKeeper; README.md says how to run it, docs/ how it works."""

__version__ = "0.1.0"
