"""A check whether a port is free, before anything on disk is changed. Main thread, at start."""

import errno
import os
import socket

from bookie.server.configuration.errors import ConfigError

__all__ = ["check_free"]

REMEDIES = {
    errno.EADDRINUSE: "another process uses it; stop that process, or set another port",
    errno.EACCES: "this user may not bind it; set a port above 1023",
    errno.EADDRNOTAVAIL: "it is not an address of this machine; correct the address",
}


def check_free(key: str, host: str, port: int) -> None:
    """Bind the port and release it. Raises ConfigError; port 0 and negative ports pass.

    The test socket does not use SO_REUSEPORT, so a second bookie is noticed however the first one binds.
    """
    if port <= 0:
        return
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            number = error.errno or 0
            reason = f"{host}:{port} cannot be bound ({os.strerror(number)})"
            remedy = REMEDIES.get(number, "correct the address and the port")
            raise ConfigError(key, str(port), reason, remedy) from None
