"""What only tests use: file operations that fail, tear and stall as planned (`faulty`).

Built with BOOKIE_FAULTS=1 and left out of a release build.

Begin with `faulty`.

Leans on: base.
"""
