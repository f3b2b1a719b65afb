"""Whether clients can find a bookie by the address that it announces. It asks the system's resolver; any thread.

A start is never refused for this: in Kubernetes, a name may get its address only when the bookie is ready, and behind
a proxy this machine need not know the name. Apache BookKeeper does not look the address up either.
"""

import ipaddress
import socket

from bookie.metadata.bookies.identity import ANY_ADDRESS, IdentitySettings, is_loopback

__all__ = ["doubt_about_address"]


def doubt_about_address(settings: IdentitySettings, bound: str) -> str:
    """Return a warning about `advertisedAddress`, with a remedy; empty if there is none. It may take many seconds.

    Args:
        settings: the settings of a bookie.
        bound: the address at which it listens.
    """
    host = settings.advertised_address
    if not host:
        return ""
    try:
        addresses = {str(found[4][0]) for found in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)}
    except OSError as error:
        return (
            f"advertisedAddress={host}: this machine finds no address for it ({error.strerror}), and clients that"
            " find none cannot connect; correct it, or enter the name in DNS"
        )
    found = ", ".join(sorted(addresses))
    local = all(map(is_loopback, addresses))
    if all(ipaddress.ip_address(one.partition("%")[0]).is_unspecified for one in addresses):
        return f"advertisedAddress={host}: no client can connect to it; set an address or a name of this machine"
    if local and not settings.allow_loopback:
        return (
            f"advertisedAddress={host}: no other machine can reach {found}; set an address or a name that they can"
            " reach, or allowLoopback=true on a single machine"
        )
    if local != is_loopback(bound) and bound != ANY_ADDRESS:
        return (
            f"advertisedAddress={host}: it is {found}, but the bookie listens only at {bound}; unset"
            " listeningInterface, unless a proxy forwards connections"
        )
    return ""
