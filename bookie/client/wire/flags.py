"""What a request may ask for besides its operation, in either protocol, and the numbers both have in common."""

from enum import IntFlag

LAST_ENTRY = -1
"""As an entry id: the one with the highest id that the bookie holds."""
MIB = 1 << 20


class Flags(IntFlag):
    """Request flags; the values are V2's bits."""

    NONE = 0
    FENCE = 1
    RECOVERY_ADD = 2
    HIGH_PRIORITY = 4
