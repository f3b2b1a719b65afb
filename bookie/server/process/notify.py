"""Notifications for systemd (`Type=notify`): that the bookie serves, stops, or is alive. Any thread."""

import os
import socket

__all__ = ["notify", "PATIENCE_S", "watchdog_s"]

PATIENCE_S = 10.0
"""How long a message that is sent only once waits for a supervisor that is slow to read, in seconds."""


def notify(*facts: str, patience_s: float = 0.0) -> None:
    """Send `READY=1` and the like to NOTIFY_SOCKET. Nothing happens if it is not set, or nothing listens there.

    The kernel keeps few messages (10) for a supervisor that does not read. What is repeated, such as `WATCHDOG=1`, is
    dropped then; what is sent only once waits for at most `patience_s` seconds.
    """
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as outbox:
        outbox.settimeout(patience_s)
        try:
            outbox.sendto("\n".join(facts).encode(), f"\0{address[1:]}" if address[0] == "@" else address)
        except OSError:  # a supervisor that does not listen must not stop a bookie
            return


def watchdog_s() -> float | None:
    """Return the interval of keep-alive messages, half of what WatchdogSec= allows; None if it is not set."""
    if os.environ.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return None
    allowed_us = os.environ.get("WATCHDOG_USEC", "")
    return int(allowed_us) / 2e6 if allowed_us.isdigit() and int(allowed_us) else None
