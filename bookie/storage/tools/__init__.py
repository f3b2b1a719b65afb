"""What an operator does to a bookie's directories while no bookie runs on them: look, check, rebuild.

Functions on directories, each in a file of its own; results are dataclasses of plain values, fit for JSON. Those that
only look change nothing, not even a lock file. Those that write say so, and want `locked` around them, except at a
bookie's start, which holds the locks already.
"""
