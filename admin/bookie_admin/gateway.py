"""The public side of the gRPC server: a door with limits, and behind it a relay to the server's private socket.

gRPC can neither limit connections nor serve sockets that are already accepted. The gateway runs a thread with an event
loop of its own. Call `listen`, then `start`; `shut` stops accepting, and `stop` ends all connections.
"""

import asyncio
import contextlib
import socket
import threading

from bookie_admin.door import Door, Limits, listen
from bookie_admin.private_socket import PrivateSocket
from bookie_admin.relay import Relay

__all__ = ["Gateway"]

EVERY = "0.0.0.0"  # noqa: S104  # the operator's choice


class Gateway:
    """The gateway of one server, which binds `private.path`.

    Raises:
        OSError: the directory of the private socket cannot be created.
    """

    def __init__(self, name: str, limits: Limits, *, wait_s: float) -> None:
        self.private = PrivateSocket()
        self._name = name
        self._limits = limits
        self._relay = Relay(self.private, wait_s=wait_s)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=f"{name}-door", daemon=True)
        self._door: Door | None = None

    def listen(self, host: str, port: int) -> int:
        """Bind and return the port number. As with gRPC, the wildcard address covers IPv4 and IPv6 where the system
        has both.

        Raises:
            OSError: the address cannot be bound.
        """
        listener = _listen_on_all(port) if host == EVERY else listen(host, port)
        self._door = Door(self._name, listener, self._limits, self._relay.carry)
        return int(listener.getsockname()[1])

    def start(self) -> None:
        """Start accepting connections. The server must be listening."""
        self.private.hide()
        self._thread.start()

    def shut(self) -> None:
        """Stop accepting. Idempotent."""
        if self._thread.is_alive():
            asyncio.run_coroutine_threadsafe(self._shut(), self._loop).result()
        elif self._door is not None:
            self._door.shut()

    def stop(self) -> None:
        """End all connections and the thread. Idempotent."""
        self.shut()
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
        self._loop.close()
        self.private.close()

    def stats(self) -> dict[str, int]:
        """Return the metrics of the door. Any thread."""
        return self._door.stats() if self._door is not None else {}

    async def _shut(self) -> None:
        assert self._door is not None
        self._door.shut()

    def _run(self) -> None:
        assert self._door is not None
        asyncio.set_event_loop(self._loop)
        self._loop.call_soon(self._door.open, self._loop)
        self._loop.run_forever()
        self._relay.close()
        self._loop.run_until_complete(asyncio.sleep(0))


def _listen_on_all(port: int) -> socket.socket:
    if socket.has_dualstack_ipv6():
        with contextlib.suppress(OSError):
            return listen("::", port)
    return listen(EVERY, port)
