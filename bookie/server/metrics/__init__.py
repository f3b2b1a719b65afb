"""The metrics of a bookie, under Apache BookKeeper's names if it has one, and otherwise with the prefix `pybookie_`.

The compiled modules count; nothing here is on the path of an entry. `bookie.metrics` has families and their text
formats.
"""
