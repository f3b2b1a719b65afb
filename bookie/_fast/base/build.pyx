"""The build flavour as Python sees it; asserted on by tests and printed at start. Any thread."""
from bookie._fast.base.build cimport DEBUG_BUILD, FAULTS_BUILD


def flavour() -> str:
    """`debug` (bounds checks, asserts) or `release`."""
    return "debug" if DEBUG_BUILD else "release"


def faults() -> bool:
    """Whether tests can plant bugs and disk faults in this build."""
    return FAULTS_BUILD
