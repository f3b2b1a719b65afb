"""When connections have used up the descriptors of the process: background work comes later then, and ends nothing.

What takes adds, flushes and replays has descriptors of its own (module `base.spare_descriptors`).
"""

import errno

__all__ = ["are_used_up", "pass_on_used_up"]


def are_used_up(error: BaseException) -> bool:
    """Whether this is all that went wrong."""
    return isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE)


def pass_on_used_up(error: BaseException) -> None:
    """Raise it again if that is all, before it is taken for what it says of a file."""
    if are_used_up(error):
        raise error
