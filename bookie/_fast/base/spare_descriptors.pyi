def keep(count: int) -> int:
    """Reserve `count` descriptors of this process for its storage, at most 4096; return how many it has now.

    Raises OSError if /dev/null cannot be opened.
    """

def kept() -> int:
    """Return the number of spare descriptors."""
