"""What a bookie measures, under Apache BookKeeper's names where it has one and under `pybookie_` where it has none.

The compiled modules count; nothing here is on the way of an entry. Families and their text: `bookie.metrics`.
"""
