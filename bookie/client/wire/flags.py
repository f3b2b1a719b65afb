"""The request flags of both protocols, and numbers that the protocols share."""

from enum import IntFlag

LAST_ENTRY = -1
"""As an entry id: the entry with the highest id that the bookie holds."""
MIB = 1 << 20


class Flags(IntFlag):
    """Request flags. Their values are the bits of V2."""

    NONE = 0
    FENCE = 1
    RECOVERY_ADD = 2
    HIGH_PRIORITY = 4
