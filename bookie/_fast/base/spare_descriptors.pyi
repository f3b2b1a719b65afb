def keep(count: int) -> int:
    """Keep so many descriptors of this process for its storage, 4096 at most; how many it got.

    Raises OSError if /dev/null cannot be opened.
    """

def kept() -> int:
    """How many are there now."""
