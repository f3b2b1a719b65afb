"""The host names under which the HTTP port may be addressed, and the pages that may make it change something."""

import http.client
import socket
from collections.abc import Callable
from typing import Any

import pytest

from bookie.server.configuration.settings import HttpSettings
from bookie_admin.http.hosts import Hosts
from bookie_admin.http.request import Refused
from bookie_admin.neighbours import is_ours
from tests.admin.http.conftest import Cluster

pytestmark = pytest.mark.leaks("gRPC keeps its own threads and their descriptors as long as the process lives")

EVERYWHERE = "0.0.0.0"  # noqa: S104 - listening everywhere is tested
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"


def served(hosts: Hosts, name: str | None) -> bool:
    """Return whether a Host header is accepted."""
    try:
        hosts.check(name)
    except Refused:
        return False
    return True


def test_names_of_the_port() -> None:
    """By default the port's addresses and the names of machine and bookie are accepted; more can be configured."""
    hosts = Hosts(
        HttpSettings(host=EVERYWHERE, allowed_hosts="bookies.example, *.cluster.local"),
        ("bookie-0.bookie:3181", "10.0.0.7"),
    )
    for name in (
        "localhost", "localhost:8080", "a.localhost", "127.0.0.1:8080", "10.0.0.7:8080", "192.168.1.9", "[::1]:8080",
        "[fe80::1]", socket.gethostname(), "bookie-0.bookie:8080", "BOOKIE-0.bookie.", "bookies.example:80",
        "bookie-0.bookie.ns.svc.cluster.local", None,
    ):  # fmt: skip
        assert served(hosts, name), name
    for name in (
        "evil.example", "evil.example:8080", "", ":8080", "localhost.evil.example", "notlocalhost", "cluster.local",
        "bookies.example.evil", "xbookies.example", "10.0.0.7.evil.example", "[::1", "a@localhost:x", "\udcff",
    ):  # fmt: skip
        assert not served(hosts, name), name
    with pytest.raises(Refused, match=r"Host 'evil\.example' .* to httpServerAllowedHosts") as no:
        hosts.check("evil.example")
    assert no.value.status == 421


@pytest.mark.thorough
def test_every_bind_has_a_list(cluster_of: Callable[..., Cluster]) -> None:
    """DNS rebinding: a foreign name is refused on every address and path; probes and scrapes by address are not."""
    bookie = cluster_of(
        httpServerHost=EVERYWHERE, adminInsecureAllowed="true", httpServerAllowedHosts="a.example"
    ).bookies[0]
    port = int(bookie.planes["http"].rpartition(":")[2])

    def status(path: str, host: str | None) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        connection.putrequest("GET", path, skip_host=True)
        if host is not None:
            connection.putheader("host", host)
        connection.endheaders()
        found = connection.getresponse().status
        connection.close()
        return found

    for path in ("/", "/livez", "/readyz", "/metrics", "/api/v1/bookie/state", "/api/v1/ledger/list"):
        assert status(path, "evil.example") == 421, path
        for host in ("10.1.2.3:8080", f"localhost:{port}", "a.example", socket.gethostname()):
            assert status(path, host) == 200, (path, host)


def test_a_get_that_changes_something(cluster_of: Callable[..., Cluster]) -> None:
    """`sanity` writes a ledger, by POST or by GET as upstream's; pages of other sites cannot make a browser do so."""
    port = cluster_of().port
    path, host = "/api/v1/bookie/sanity", f"127.0.0.1:{port.address[1]}"
    before = port.get("/metrics").text
    for method in ("GET", "HEAD", "POST"):
        for headers in (
            {"origin": "http://evil.example"}, {"sec_fetch_site": "cross-site"}, {"sec_fetch_site": "same-site"},
            {"origin": "null", "user_agent": FIREFOX},
        ):  # fmt: skip
            assert port.ask(method, path, **headers).status == 403, (method, headers)
    silent = port.ask("GET", path, user_agent=FIREFOX)  # an image in a page that was loaded without TLS
    assert silent.status == 403
    assert "use POST" in silent.text
    assert "bookie_SERVER_SANITY -1\n" in before
    assert "bookie_SERVER_SANITY -1\n" in port.get("/metrics").text  # nothing was written
    assert port.ask("POST", path).json["passed"]
    assert port.get(path).json["passed"]
    assert port.ask("POST", path, origin=f"http://{host}", sec_fetch_site="same-origin").status == 200


def test_who_is_at_the_other_end() -> None:
    """Our own processes over loopback are recognised while the connection is open, and nothing else."""
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_connection(listener.getsockname()) as peer:
        here: Any = listener.getsockname()
        accepted, there = listener.accept()
        with accepted:
            assert is_ours(there, here)
            assert not is_ours((there[0], there[1] ^ 1), here)
            assert not is_ours(("10.0.0.1", there[1]), here)
            assert not is_ours(("nowhere", there[1]), here)
            peer.close()
            assert not is_ours(there, here)  # for a closed connection the kernel reports user 0
