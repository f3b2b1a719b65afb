"""A network of hosts in namespaces of their own, with distance between them; see relay.c."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from perf.load.build import build

__all__ = ["Network", "network", "Unavailable"]

QUEUE_BYTES = 1 << 20
"""What waits in the switch for one link at most."""
NO_NAMESPACES = 3
"""The exit code of the relay where the kernel gives no namespaces."""


class Unavailable(Exception):
    """There can be no such network here; the text says why."""


class Network:
    """Hosts 0, 1 and so on, with the addresses 10.77.0.1, 10.77.0.2 and so on."""

    def __init__(self, relay: "subprocess.Popen[str]", spaces: list[str]) -> None:
        self._relay = relay
        self._spaces = spaces

    @staticmethod
    def address(host: int) -> str:
        """Return the address of a host."""
        return f"10.77.0.{host + 1}"

    def on(self, host: int) -> list[str]:
        """Return the words before a command that is to run on a host."""
        return ["nsenter", f"--net=/proc/{self._relay.pid}/fd/{self._spaces[host]}"]

    def cut(self, host: int) -> None:
        """Drop all packets to and from a host."""
        self._tell(f"cut {host}")

    def join(self, host: int) -> None:
        """Let packets through to and from a host again."""
        self._tell(f"join {host}")

    def _tell(self, line: str) -> None:
        assert self._relay.stdin is not None
        assert self._relay.stdout is not None
        self._relay.stdin.write(line + "\n")
        self._relay.stdin.flush()
        assert self._relay.stdout.readline() == "done\n"


@contextmanager
def network(hosts: int, mbit_s: float, rtt_ms: float, loss_percent: float = 0.0) -> Iterator[Network]:
    """Yield a network of so many hosts.

    Args:
        hosts: how many.
        mbit_s: the rate of each host's link, in each direction.
        rtt_ms: the time to another host and back.
        loss_percent: how many packets of a hundred are lost.

    Raises:
        Unavailable: the kernel gives no namespaces or TUN devices, usually because this is not root.
    """
    words = [round(mbit_s * 1e6 / 8), round(rtt_ms * 1e6 / 2), round(loss_percent * 1e4), QUEUE_BYTES]
    relay = subprocess.Popen(
        [build("relay"), str(hosts), *map(str, words)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert relay.stdin is not None
    assert relay.stdout is not None
    assert relay.stderr is not None
    with relay, relay.stdin:
        spaces = relay.stdout.readline().split()
        if not spaces:
            why = relay.stderr.read().strip()
            raise Unavailable(why if relay.wait() == NO_NAMESPACES else f"the relay ended: {why}")
        yield Network(relay, spaces)
