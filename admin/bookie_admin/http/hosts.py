"""The host names under which this port may be addressed: protection against pages of other sites. Pure values.

With DNS rebinding, a foreign name that resolves to this address makes a browser treat this port as that site, whose
page can then read everything and send any request. So only known names are served, whatever address the port is bound
to. An IP address cannot be rebound, because its page comes from the address itself; Kubernetes probes and Prometheus
scrapes use addresses. A client without a Host header is not a browser.
"""

import ipaddress
import socket
from collections.abc import Mapping
from urllib.parse import urlsplit

from bookie.metadata.bookies.identity import is_loopback
from bookie.server.configuration.settings import HttpSettings
from bookie_admin.http.request import Refused

__all__ = ["check_origin", "Hosts"]

LOCAL = ("localhost", ".localhost")
BROWSER = "mozilla/"
"""The beginning of every browser's User-Agent."""


class Hosts:
    """The names of one port.

    Args:
        settings: the settings of the port.
        own: further names of the bookie, as `host` or `host:port`.
    """

    def __init__(self, settings: HttpSettings, own: tuple[str, ...]) -> None:
        self._local = is_loopback(settings.host)
        machine = socket.gethostname()
        names = [settings.host, machine, machine.partition(".")[0], *map(_name, own)]
        given = [one.strip().lower() for one in settings.allowed_hosts.split(",") if one.strip()]
        self._names = {one.lower() for one in names if one} | {one for one in given if not one.startswith("*.")}
        self._below = (*LOCAL[1:], *(one[1:] for one in given if one.startswith("*.")))

    def check(self, host: str | None) -> None:
        """Check the Host header.

        Raises:
            Refused: the name does not belong to this port (421).
        """
        if host is None:
            return
        name = _name(host)
        if name == LOCAL[0] or name in self._names or name.endswith(self._below) or self._is_address(name):
            return
        raise Refused(
            421, f"Host {host[:100]!r} is not a name of this port; use its IP address, or add the name to"
            " httpServerAllowedHosts"
        )  # fmt: skip

    def _is_address(self, name: str) -> bool:
        """Return whether the name is an acceptable IP address; for a port on loopback only loopback addresses are."""
        try:
            found = ipaddress.ip_address(name)
        except ValueError:
            return False
        return found.is_loopback or not self._local


def check_origin(method: str, headers: Mapping[str, str]) -> None:
    """Check that a request which changes something does not come from a page of another site.

    Browsers say where a request comes from; it must be the console itself. Other clients do not say it, and are
    accepted.

    Raises:
        Refused: it comes from another site's page, or may do so (403).
    """
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if site not in ("same-origin", "none", None) or (origin and urlsplit(origin).netloc != headers.get("host")):
        raise Refused(403, "this request comes from a page of another site; use the console of this bookie itself")
    silent = site is None and origin is None  # without TLS, a browser does not say where a GET request comes from
    if method == "GET" and silent and headers.get("user-agent", "").lower().startswith(BROWSER):
        raise Refused(
            403, "this GET request changes something, and the browser does not say which page it comes from; use POST"
        )


def _name(host: str) -> str:
    try:
        return "" if "@" in host else (urlsplit(f"//{host}").hostname or "").rstrip(".")
    except ValueError:  # an invalid address in brackets
        return ""
