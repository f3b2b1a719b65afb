"""File operations that fail, tear and stall as planned, for tests only (`faulty`).

Built with BOOKIE_FAULTS=1 and left out of a release build.

Begin with `faulty`.

Leans on: base.
"""
