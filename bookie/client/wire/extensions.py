"""Operations that Apache BookKeeper does not have. They are sent only to bookies that advertise them. Any thread.

A Java bookie closes the connection when it receives an unknown operation, so clients never just try one.
"""

from collections.abc import Iterable

BATCH_READ = "batchRead"
BOOKIE_LOAD = "bookieLoad"
"""More fields in the response to GET_BOOKIE_INFO, if the request has the flag for them."""
WRITE_CLOSE = "writeClose"


class Extensions:
    """The extensions that one bookie supports. All connections of a client to that bookie share the object.

    Args:
        advertised: The names of the extensions that the bookie advertises.
    """

    def __init__(self, advertised: Iterable[str] = ()) -> None:
        self._offered = frozenset(advertised)

    def __contains__(self, name: str) -> bool:
        return name in self._offered

    def withdraw(self, name: str) -> None:
        """Remove an extension, after the bookie answered that it does not know the operation.

        Args:
            name: The name of the extension.
        """
        self._offered -= {name}
