"""A private network with short packets that are delayed or lost, as far as the machine permits it."""

import ctypes
import os
import subprocess

CLONE_NEWNET = 0x40000000
SHAPES = (
    ("netem", "delay", "5ms", "2ms", "loss", "1%"),
    ("tbf", "rate", "200mbit", "burst", "64kb", "limit", "128kb"),
)
"""Queueing disciplines, best first: delay and loss of some packets, or dropping those that do not fit."""


class NotPermitted(Exception):
    """This process or this kernel cannot create such a network."""


def rough_network() -> str:
    """Move the calling thread into a network with only a loopback interface; return how that treats packets.

    Packets have 1,500 bytes there. The network belongs to the thread, and to every socket that it creates, until it
    ends. Raises NotPermitted.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET) != 0:
        raise NotPermitted(f"no network namespace: {os.strerror(ctypes.get_errno())}")
    _run("ip", "link", "set", "lo", "up", "mtu", "1500")
    refusals = []
    for shape in SHAPES:
        try:
            _run("tc", "qdisc", "add", "dev", "lo", "root", *shape)
        except NotPermitted as error:
            refusals.append(str(error))
        else:
            return " ".join(shape)
    raise NotPermitted("; ".join(refusals))


def _run(*command: str) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except FileNotFoundError:
        raise NotPermitted(f"there is no {command[0]}") from None
    except subprocess.CalledProcessError as error:
        raise NotPermitted(f"{' '.join(command)}: {error.stderr.strip()}") from None
