"""The error for a bookie to which no connection can be made. Pure functions."""

import os

from bookie.errors import BookieUnavailable

__all__ = ["unreachable"]


def unreachable(address: str, error: OSError) -> BookieUnavailable:
    """Return the error of an attempt to connect to a bookie.

    Args:
        address: The address of the bookie, as host and port.
        error: What the system said. asyncio's text repeats the address; here the text is that of the number.
    """
    if isinstance(error, ConnectionRefusedError):
        return BookieUnavailable(f"{address}: the bookie is down: nothing listens there")
    reason = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror or str(error)
    return BookieUnavailable(f"{address}: the bookie cannot be reached ({reason}); check its machine and the network")
