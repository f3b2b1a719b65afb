"""Tells which user of this machine is at the other end of a loopback connection. Any thread; it never blocks for long.

The kernel knows the owner of each socket (sock_diag, as shown by `ss -e`). Only an established connection with an open
socket counts, because for a closed one the kernel reports user 0.
"""

import contextlib
import ipaddress
import os
import socket
import struct

__all__ = ["is_ours"]

SOCK_DIAG_BY_FAMILY = 20
NLM_F_REQUEST = 1
NETLINK_SOCK_DIAG = 4
ESTABLISHED = 1
ALL_STATES = 0xFFFFFFFF
HEADER = struct.Struct("=IHHII")
REQUEST = struct.Struct("=BBBBI")
PORTS = struct.Struct(">HH")
ADDRESS_BYTES = 16
NO_INTERFACE_NO_COOKIE = struct.pack("=III", 0, 0xFFFFFFFF, 0xFFFFFFFF)
ANSWER = struct.Struct("=BBBB48xIIIII")
"""family, state, timer, retransmits; the identity of the socket; expires, rqueue, wqueue, user, inode."""
ROOT = 0
OVERFLOW = 65534
"""Users of other user namespaces appear as this one, so a peer with this user id is never taken for our own."""
ANSWER_BYTES = 4096
ANSWER_S = 0.1


def is_ours(peer: tuple[str, int], here: tuple[str, int]) -> bool:
    """Return whether the process at `peer` runs as our own user or as root; False if that cannot be determined."""
    with contextlib.suppress(OSError, ValueError, struct.error):
        if ipaddress.ip_address(peer[0]).is_loopback:
            user = _owner(peer, here)
            return user == ROOT or (user == os.geteuid() and user != OVERFLOW)
    return False


def _owner(peer: tuple[str, int], here: tuple[str, int]) -> int | None:
    """Return the owner of the socket that is bound to `peer` and connected to `here`; None if there is none."""
    family = socket.AF_INET6 if ":" in peer[0] else socket.AF_INET
    ends = b"".join(socket.inet_pton(family, one[0]).ljust(ADDRESS_BYTES, b"\0") for one in (peer, here))
    body = REQUEST.pack(family, socket.IPPROTO_TCP, 0, 0, ALL_STATES) + PORTS.pack(peer[1], here[1]) + ends
    body += NO_INTERFACE_NO_COOKIE
    with socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, NETLINK_SOCK_DIAG) as kernel:
        kernel.settimeout(ANSWER_S)
        kernel.send(HEADER.pack(HEADER.size + len(body), SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST, 1, 0) + body)
        answer = kernel.recv(ANSWER_BYTES)
    _, kind, *_ = HEADER.unpack_from(answer)
    if kind != SOCK_DIAG_BY_FAMILY:
        return None
    _, state, _, _, _, _, _, user, inode = ANSWER.unpack_from(answer, HEADER.size)
    return user if state == ESTABLISHED and inode else None
