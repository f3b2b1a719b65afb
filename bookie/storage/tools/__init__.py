"""Offline tools for a bookie's directories: list, check and rebuild, while no bookie runs on them.

Each tool is a function on directories in a file of its own; results are dataclasses of plain values that can be
written as JSON. Tools that only read change nothing, not even a lock file. Tools that write say so, and must run
inside `locked`, except at the start of a bookie, which holds the locks already.
"""
