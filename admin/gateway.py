"""What the world sees of the gRPC server: a door with limits, and behind it a relay to the server's private socket.

gRPC takes neither limits of connections nor sockets that are accepted already. A thread with an event loop of its own.
`listen`, then `start`; `shut` accepts no more, `stop` ends what is open still.
"""

import asyncio
import contextlib
import socket
import threading

from admin.door import Door, Limits, listen
from admin.private_socket import PrivateSocket
from admin.relay import Relay

__all__ = ["Gateway"]

EVERY = "0.0.0.0"  # noqa: S104 - what the operator has written


class Gateway:
    """Of one server, which binds `private.path`. The constructor makes a directory: OSError."""

    def __init__(self, name: str, limits: Limits, *, wait_s: float) -> None:
        self.private = PrivateSocket()
        self._name = name
        self._limits = limits
        self._relay = Relay(self.private, wait_s=wait_s)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=f"{name}-door", daemon=True)
        self._door: Door | None = None

    def listen(self, host: str, port: int) -> int:
        """Bind; the port. OSError. Every address is that of both families, where the system has both, as with gRPC."""
        listener = _listen_on_all(port) if host == EVERY else listen(host, port)
        self._door = Door(self._name, listener, self._limits, self._relay.carry)
        return int(listener.getsockname()[1])

    def start(self) -> None:
        """The server listens: let visitors in."""
        self.private.hide()
        self._thread.start()

    def shut(self) -> None:
        """Accept no more. Idempotent."""
        if self._thread.is_alive():
            asyncio.run_coroutine_threadsafe(self._shut(), self._loop).result()
        elif self._door is not None:
            self._door.shut()

    def stop(self) -> None:
        """End everything. Idempotent."""
        self.shut()
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
        self._loop.close()
        self.private.close()

    def stats(self) -> dict[str, int]:
        """Of the door. Any thread."""
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
