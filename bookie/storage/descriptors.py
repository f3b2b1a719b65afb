"""What to do when connections have used up the file descriptors of the process: background work is postponed, not
ended.

Adds, flushes and replays have descriptors reserved for them (module `base.spare_descriptors`).
"""

import errno

__all__ = ["are_used_up", "pass_on_used_up"]


def are_used_up(error: BaseException) -> bool:
    """Return whether the error means only that no file descriptor is left."""
    return isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE)


def pass_on_used_up(error: BaseException) -> None:
    """Raise the error again if no descriptor was left, so that it is not mistaken for a problem of a file."""
    if are_used_up(error):
        raise error
