"""Under which names this port may be asked for, and from where: against pages of other sites in a browser. Pure values.

A name of somebody else's that leads to this address (DNS rebinding) makes a browser take this port for that site, whose
page then reads everything and sends what it likes. So only known names are served, whatever address the port is bound
to. An IP address cannot be such a name, as its page comes from the address itself; it is how Kubernetes probes and
Prometheus scrapes. Whoever names no host at all is no browser.
"""

import ipaddress
import socket
from collections.abc import Mapping
from urllib.parse import urlsplit

from admin.http.request import Refused
from bookie.metadata.bookies.identity import is_loopback
from bookie.server.configuration.settings import HttpSettings

__all__ = ["check_origin", "Hosts"]

LOCAL = ("localhost", ".localhost")
BROWSER = "mozilla/"
"""Every browser's User-Agent begins so."""


class Hosts:
    """The names of one port. `own`: how else the bookie is called, as `host` or `host:port`."""

    def __init__(self, settings: HttpSettings, own: tuple[str, ...]) -> None:
        self._local = is_loopback(settings.host)
        machine = socket.gethostname()
        names = [settings.host, machine, machine.partition(".")[0], *map(_name, own)]
        given = [one.strip().lower() for one in settings.allowed_hosts.split(",") if one.strip()]
        self._names = {one.lower() for one in names if one} | {one for one in given if not one.startswith("*.")}
        self._below = (*LOCAL[1:], *(one[1:] for one in given if one.startswith("*.")))

    def check(self, host: str | None) -> None:
        """The header. Refused (421)."""
        if host is None:
            return
        name = _name(host)
        if name == LOCAL[0] or name in self._names or name.endswith(self._below) or self._is_address(name):
            return
        raise Refused(
            421, f"Host {host[:100]!r} is no name of this port; ask by its address, or put the name into"
            " httpServerAllowedHosts"
        )  # fmt: skip

    def _is_address(self, name: str) -> bool:
        """On the loopback address nobody has a reason to name another one."""
        try:
            found = ipaddress.ip_address(name)
        except ValueError:
            return False
        return found.is_loopback or not self._local


def check_origin(method: str, headers: Mapping[str, str]) -> None:
    """For requests that change something. A browser says where one comes from: it must be the console itself. Others
    say nothing. Refused (403).
    """
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if site not in ("same-origin", "none", None) or (origin and urlsplit(origin).netloc != headers.get("host")):
        raise Refused(403, "this change comes from another site's page; open the console of this bookie itself")
    silent = site is None and origin is None  # a browser says nothing in a GET, where the connection is in clear
    if method == "GET" and silent and headers.get("user-agent", "").lower().startswith(BROWSER):
        raise Refused(403, "a browser does not say which page this GET comes from, and it changes something; send POST")


def _name(host: str) -> str:
    try:
        return "" if "@" in host else (urlsplit(f"//{host}").hostname or "").rstrip(".")
    except ValueError:  # not an address in brackets
        return ""
