"""File operations for tests and measurements only: those that fail, tear and stall as planned (`faulty`), and those
that take as long as on slow disks (`slow`).

Built with BOOKIE_FAULTS=1 and left out of a release build.

Begin with `faulty`.

Leans on: base.
"""
